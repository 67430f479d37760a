#!/usr/bin/perl
# program_nfslock.pl VERB nfslock FILES WORK HOST ARGUMENT...: the lock of File::NFSLock. The verbs are those of program.sh.
use strict;
use warnings;
use Fcntl qw(LOCK_EX LOCK_NB);
use File::NFSLock;
use IO::Handle;

my ($verb, undef, $files, undef, undef, @arguments) = @ARGV;
STDOUT->autoflush(1);

sub wait_for { select(undef, undef, undef, $_[0]) }

# Returns whether nobody else has the lock.
sub attempt {
    my ($action) = @_;
    my $lock = File::NFSLock->new({ file => "$files/nfslock", lock_type => LOCK_EX | LOCK_NB });
    if (!$lock) {
        die $File::NFSLock::errstr unless $File::NFSLock::errstr =~ /NONBLOCKING lock failed/;
        return 0;
    }
    $action->();
    $lock->unlock or die $File::NFSLock::errstr;
    return 1;
}

sub increment {
    open(my $in, '<', $arguments[0]) or die "$arguments[0]: $!";
    my $number = <$in>;
    close($in);
    wait_for(0.003);
    open(my $out, '>', $arguments[0]) or die "$arguments[0]: $!";
    print $out $number + 1, "\n";
    close($out);
}

if ($verb eq 'count') {
    for (1 .. $arguments[1]) {
        wait_for(0.01 + rand(0.03)) until attempt(\&increment);
    }
} elsif ($verb eq 'hold') {
    my $hold = sub {
        print "held\n";
        wait_for(0.02) until -e $arguments[0];
    };
    attempt($hold) or die 'somebody has the lock';
    print "released\n";
} else {
    exit(attempt(sub { }) ? 0 : 1);
}
