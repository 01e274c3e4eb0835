#!/usr/bin/python3
"""Checks how scripts are written: check_scripts.py [ROOT]

A function called `install` is run where install(1) is meant, without an error that tells. Names of bash's builtins and of
coreutils, which every system has, are no names for functions of scripts/ and .ci/.

Tests that are programs can be run by their names, by Debian's Python: the modules that they need are installed for that one,
and another that is first on PATH would make them skips."""
import os
import re
import subprocess
import sys

COREUTILS = set("""[ arch b2sum base32 base64 basename basenc cat chcon chgrp chmod chown chroot cksum comm cp csplit cut date
dd df dir dircolors dirname du echo env expand expr factor false fmt fold groups head hostid id install join link ln logname
ls md5sum mkdir mkfifo mknod mktemp mv nice nl nohup nproc numfmt od paste pathchk pinky pr printenv printf ptx pwd readlink
realpath rm rmdir runcon sha1sum sha224sum sha256sum sha384sum sha512sum shred shuf sleep sort split stat stdbuf stty sum
sync tac tail tee test timeout touch tr true truncate tsort tty uname unexpand uniq unlink users vdir wc who whoami
yes""".split())
FUNCTION = re.compile(r"^\s*(?:function\s+)?([\w:.-]+)\s*\(\)", re.M)


def python_programs(root):
    """What is wrong with the programs of tests/, and how many there are."""
    wrong, programs = [], 0
    for base, _, names in os.walk(os.path.join(root, "tests")):
        for path in sorted(os.path.join(base, name) for name in names if name.endswith(".py")):
            with open(path, encoding="utf-8") as f:
                first = f.readline().rstrip("\n")
            if not first.startswith("#!"):
                continue
            programs += 1
            if first != "#!/usr/bin/python3":
                wrong.append("%s:1: %s, should be #!/usr/bin/python3" % (os.path.relpath(path, root), first))
            if not os.access(path, os.X_OK):
                wrong.append("%s is not executable" % os.path.relpath(path, root))
    return wrong, programs


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    hidden = COREUTILS | set(subprocess.run(["bash", "-c", "compgen -b"], check=True, stdout=subprocess.PIPE,
                                            encoding="utf-8").stdout.split())
    (wrong, programs), functions, scripts = python_programs(root), 0, 0
    for folder in ("scripts", ".ci"):
        for name in sorted(os.listdir(os.path.join(root, folder))):
            with open(os.path.join(root, folder, name), encoding="utf-8") as f:
                text = f.read()
            scripts += 1
            for match in FUNCTION.finditer(text):
                functions += 1
                if match.group(1) in hidden:
                    line = text.count("\n", 0, match.start(1)) + 1
                    wrong.append("%s/%s:%d: function %s hides the command" % (folder, name, line, match.group(1)))
    for line in wrong:
        print(line)
    print("%d scripts with %d functions, %d programs of tests, %d wrong" % (scripts, functions, programs, len(wrong)))
    return 1 if wrong or not functions or not programs else 0


sys.exit(main())
