/* SPDX-License-Identifier: Apache-2.0
 *
 * What every fuzz target is made of. A target is one function, which libFuzzer calls with input
 * after input (https://llvm.org/docs/LibFuzzer.html), and which aborts where a property of the
 * parser does not hold. Without libFuzzer, replay.c calls it with the inputs of the corpus.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* A property, which holds for every input. */
#define REQUIRE(condition)                                                                         \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__,          \
				#condition);                                                       \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

/* The input up to its first NUL as a string, in memory of just that size. To be freed. */
static inline char *fuzz_text(const uint8_t *data, size_t bytes)
{
	char *text = strndup(bytes > 0 ? (const char *)data : "", bytes);

	REQUIRE(text);
	return text;
}

/* Takes the next byte of the input; 0 at its end. */
static inline uint8_t fuzz_byte(const uint8_t **data, size_t *bytes)
{
	if (*bytes == 0)
		return 0;
	--*bytes;
	return *(*data)++;
}

/* Takes the next 64 bits, as fuzz_byte(). */
static inline uint64_t fuzz_number(const uint8_t **data, size_t *bytes)
{
	uint64_t number = 0;

	for (int i = 0; i < 8; i++)
		number = number << 8 | fuzz_byte(data, bytes);
	return number;
}

#endif
