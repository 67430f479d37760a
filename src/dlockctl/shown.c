/* SPDX-License-Identifier: Apache-2.0 */
#include "dlockctl/shown.h"

#include <wchar.h>
#include <wctype.h>

#include "base/printable.h"

size_t shown_bytes(const char *text, size_t bytes, int *ret_columns)
{
	mbstate_t state = {0};
	wchar_t wide;
	size_t length = mbrtowc(&wide, text, bytes, &state);
	if (length == 0 || length > bytes || !iswprint((wint_t)wide) ||
	    !printable_is((uint32_t)wide))
		return 0;
	*ret_columns = wcwidth(wide);
	return *ret_columns >= 0 ? length : 0;
}
