"""The disk that a node is measured on: ext4 with a journal, as Debian installs it, in a loop device.

Without a journal (some virtual machines), ext4 does not reuse an inode for some minutes after its file was deleted, and
searches ever longer for others: after a few hundred pods that alone doubles every figure."""
import contextlib
import os
import subprocess
import sys
import tempfile


@contextlib.contextmanager
def journaled(mib=4096):
    """Makes tempfile, and so every Node, use such a disk. Where loop devices are forbidden it says so and uses what is there."""
    with tempfile.TemporaryDirectory(prefix="gantry-disk.") as work:
        image, mount = os.path.join(work, "image"), os.path.join(work, "mount")
        os.mkdir(mount)
        with open(image, "wb") as out:
            out.truncate(mib << 20)
        made = subprocess.run(["mkfs.ext4", "-q", "-F", image], capture_output=True, text=True)
        if made.returncode == 0:
            made = subprocess.run(["mount", "-o", "loop", image, mount], capture_output=True, text=True)
        if made.returncode != 0:
            print("bench: no loop device, measuring on the disk of " + work + ": " + made.stderr.strip(), file=sys.stderr)
            yield
            return
        before, tempfile.tempdir = tempfile.tempdir, mount
        try:
            yield
        finally:
            tempfile.tempdir = before
            subprocess.run(["umount", mount], check=False)
