"""Programs that keep their data in a directory of style = file: program_texts.py PROGRAM add FILE NAME COUNT | PROGRAM check FILE

PROGRAM is sqlite, mbox or maildir. add: adds so many rows, or mails, by that name, one by one, each under the program's own lock. check:
prints how many there are, without those that are there twice; of sqlite also its counter, and "ok" if the database is whole."""
import mailbox
import sqlite3
import sys
import time

program, what, path, *arguments = sys.argv[1:]


def connect():
    return sqlite3.connect(path, timeout=120, isolation_level=None)


def once(call, error, words):
    """Again and again while somebody else has the lock."""
    while True:
        try:
            return call()
        except error as failure:
            if words not in str(failure):
                raise
            time.sleep(0.01)


def transact(database, name, number):
    database.execute("BEGIN IMMEDIATE")
    database.execute("INSERT INTO entry VALUES (?, ?)", (name, number))
    database.execute("UPDATE counter SET value = value + 1")
    database.execute("COMMIT")


def sqlite_add(name, count):
    database = connect()
    for number in range(count):
        once(lambda n=number: transact(database, name, n), sqlite3.OperationalError, "locked")


def sqlite_check():
    database = connect()
    print(database.execute("SELECT count(DISTINCT name || number) FROM entry").fetchone()[0],
          database.execute("SELECT value FROM counter").fetchone()[0], database.execute("PRAGMA integrity_check").fetchone()[0])


def make_box():
    return mailbox.mbox(path, create=False) if program == "mbox" else mailbox.Maildir(path, create=False)


def mail_add(name, count):
    for number in range(count):
        box = make_box()
        once(box.lock, mailbox.ExternalClashError, "")
        mail = mailbox.Message()
        mail["Subject"] = f"{name} {number}"
        mail.set_payload("a line\n" * 5)
        box.add(mail)
        box.flush()
        box.unlock()
        box.close()


def mail_check():
    print(len({mail["Subject"] for mail in make_box()}))


if what == "add":
    (sqlite_add if program == "sqlite" else mail_add)(arguments[0], int(arguments[1]))
else:
    (sqlite_check if program == "sqlite" else mail_check)()
