#!/usr/bin/perl
# record_counter.pl LOCK COUNTER TIMES: increments the number in a plain file under a record lock, so many times.
use strict;
use warnings;
use Fcntl qw(:DEFAULT :seek F_SETLKW F_WRLCK F_UNLCK);

my ($lock, $counter, $times) = @ARGV;
sysopen(my $file, $lock, O_RDWR | O_CREAT, 0666) or die "$lock: $!";

sub record_lock {
    my $request = pack('s s x![q] q q i x![q]', $_[0], SEEK_SET, 10, 1, 0);
    fcntl($file, F_SETLKW, $request) or die "fcntl: $!";
}

for (1 .. $times) {
    record_lock(F_WRLCK);
    open(my $in, '<', $counter) or die "$counter: $!";
    my $number = <$in>;
    close($in);
    open(my $out, '>', $counter) or die "$counter: $!";
    print $out $number + 1, "\n";
    close($out);
    record_lock(F_UNLCK);
}
