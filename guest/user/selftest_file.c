/* SPDX-License-Identifier: MIT */
/* selftest: the file system, pipes, poll, and programs that are scripts. */
#define _GNU_SOURCE
#include "selftest.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

static char folder[] = "/tmp/selftest.XXXXXX";

/* A folder of the test's own, and the working directory. */
static bool enter_folder(void)
{
    return mkdtemp(folder) != NULL && chdir(folder) == 0;
}

static bool leave_folder(void)
{
    return chdir("/") == 0 && rmdir(folder) == 0;
}

static int write_file(const char *name, const char *text, mode_t mode)
{
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, mode);
    int result = -1;

    if (fd >= 0) {
        result =
            write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : -1;
        close(fd);
    }
    return result;
}

static bool file_is(const char *name, const char *text)
{
    char buf[256];
    int fd = open(name, O_RDONLY);
    ssize_t n = fd < 0 ? -1 : read(fd, buf, sizeof(buf));

    close(fd);
    return n == (ssize_t)strlen(text) && memcmp(buf, text, (size_t)n) == 0;
}

static bool written_files(void)
{
    char buf[8] = "";
    struct stat st;
    int fd, other;

    CHECK(enter_folder());
    CHECK_EQ(write_file("a", "hello", 0644), 0);
    CHECK(file_is("a", "hello"));
    fd = open("a", O_RDWR | O_APPEND);
    CHECK(fd >= 0 && pread(fd, buf, 2, 3) == 2 && memcmp(buf, "lo", 2) == 0);
    CHECK(lseek(fd, 1, SEEK_SET) == 1 && write(fd, "!", 1) == 1);
    CHECK_EQ(lseek(fd, 0, SEEK_CUR), 6); /* appended */
    other = dup(fd);
    CHECK(lseek(other, 2, SEEK_SET) == 2 && lseek(fd, 0, SEEK_CUR) == 2);
    CHECK(ftruncate(fd, 3) == 0 && file_is("a", "hel"));
    CHECK(ftruncate(fd, 5) == 0 && fstat(fd, &st) == 0 && st.st_size == 5);
    CHECK(pread(fd, buf, 5, 0) == 5 && memcmp(buf, "hel\0\0", 5) == 0);
    CHECK_EQ(unlink("a"), 0);
    CHECK(pread(fd, buf, 3, 0) == 3 && fstat(fd, &st) == 0);
    CHECK_EQ(st.st_nlink, 0);
    errno = 0;
    CHECK(open("a", O_RDONLY) == -1 && errno == ENOENT);
    CHECK(close(fd) == 0 && close(other) == 0);
    return leave_folder();
}

static bool holes(void)
{
    char buf[4096];
    struct stat st;
    int fd;

    CHECK(enter_folder());
    fd = open("h", O_RDWR | O_CREAT | O_EXCL, 0600);
    CHECK(fd >= 0 && pwrite(fd, "x", 1, 1000000) == 1);
    CHECK(fstat(fd, &st) == 0 && st.st_size == 1000001);
    CHECK(pread(fd, buf, sizeof(buf), 500000) == sizeof(buf));
    for (unsigned i = 0; i < sizeof(buf); i++) {
        CHECK_EQ(buf[i], 0);
    }
    CHECK(pread(fd, buf, 10, 999999) == 2 && buf[1] == 'x');
    errno = 0;
    CHECK(open("h", O_CREAT | O_EXCL | O_RDWR, 0600) == -1 && errno == EEXIST);
    CHECK(close(fd) == 0 && unlink("h") == 0);
    return leave_folder();
}

static bool vectors(void)
{
    char a[3], b[4];
    struct iovec out[2] = {{(void *)(uintptr_t) "abc", 3},
                           {(void *)(uintptr_t) "defg", 4}};
    struct iovec in[2] = {{a, sizeof(a)}, {b, sizeof(b)}};
    int fd;

    CHECK(enter_folder());
    fd = open("v", O_RDWR | O_CREAT, 0600);
    CHECK_EQ(writev(fd, out, 2), 7);
    CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
    CHECK_EQ(readv(fd, in, 2), 7);
    CHECK(memcmp(a, "abc", 3) == 0 && memcmp(b, "defg", 4) == 0);
    CHECK_EQ(preadv(fd, in, 1, 2), 3);
    CHECK(memcmp(a, "cde", 3) == 0);
    CHECK(close(fd) == 0 && unlink("v") == 0);
    return leave_folder();
}

static bool names(void)
{
    char buf[300], longer[300];
    struct stat st;

    CHECK(enter_folder());
    CHECK(mkdir("d", 0755) == 0 && mkdir("d/e", 0700) == 0);
    CHECK(stat("d/e/../e/.", &st) == 0 && S_ISDIR(st.st_mode));
    errno = 0;
    CHECK(mkdir("d", 0755) == -1 && errno == EEXIST);
    CHECK(mkdir("x/y", 0755) == -1 && errno == ENOENT);
    CHECK(rmdir("d") == -1 && errno == ENOTEMPTY);
    CHECK(unlink("d") == -1 && errno == EISDIR);
    CHECK_EQ(write_file("d/f", "1", 0644), 0);
    CHECK(stat("d/f/g", &st) == -1 && errno == ENOTDIR);
    CHECK(rmdir("d/f") == -1 && errno == ENOTDIR);
    CHECK(open("d", O_WRONLY) == -1 && errno == EISDIR);
    CHECK(open("d/f", O_RDONLY | O_DIRECTORY) == -1 && errno == ENOTDIR);
    memset(longer, 'n', sizeof(longer));
    longer[299] = '\0';
    CHECK(open(longer, O_RDONLY) == -1 && errno == ENAMETOOLONG);
    CHECK(stat("", &st) == -1 && errno == ENOENT);
    CHECK(rename("d/f", "g") == 0 && file_is("g", "1"));
    CHECK_EQ(write_file("h", "2", 0644), 0);
    CHECK(rename("h", "g") == 0 && file_is("g", "2"));
    CHECK(rename("d", "d/e/z") == -1 && errno == EINVAL);
    CHECK(rename("g", "d") == -1 && errno == EISDIR);
    CHECK(chdir("d/e") == 0 && getcwd(buf, sizeof(buf)) != NULL);
    CHECK(strcmp(buf + strlen(buf) - 4, "/d/e") == 0);
    CHECK(getcwd(buf, 3) == NULL && errno == ERANGE);
    CHECK(chdir("../..") == 0 && access("g", R_OK | W_OK) == 0);
    CHECK(unlink("g") == 0 && rmdir("d/e") == 0 && rmdir("d") == 0);
    return leave_folder();
}

static bool links(void)
{
    char buf[16];
    struct stat st;

    CHECK(enter_folder());
    CHECK_EQ(write_file("f", "text", 0644), 0);
    CHECK(symlink("f", "l") == 0 && file_is("l", "text"));
    CHECK(readlink("l", buf, sizeof(buf)) == 1 && buf[0] == 'f');
    CHECK(lstat("l", &st) == 0 && S_ISLNK(st.st_mode) && st.st_size == 1);
    errno = 0;
    CHECK(readlink("f", buf, sizeof(buf)) == -1 && errno == EINVAL);
    CHECK(open("l", O_RDONLY | O_NOFOLLOW) == -1 && errno == ELOOP);
    CHECK(symlink("b", "a") == 0 && symlink("a", "b") == 0);
    CHECK(open("a", O_RDONLY) == -1 && errno == ELOOP);
    CHECK(unlink("f") == 0 && stat("l", &st) == -1 && errno == ENOENT);
    CHECK_EQ(write_file("l", "new", 0644), 0); /* makes f again */
    CHECK(file_is("f", "new"));
    CHECK(unlink("f") == 0 && unlink("l") == 0);
    CHECK(unlink("a") == 0 && unlink("b") == 0);
    return leave_folder();
}

static bool has_names(const char *name, ino_t ino, nlink_t names)
{
    struct stat st;

    return stat(name, &st) == 0 && st.st_ino == ino && st.st_nlink == names;
}

static bool hard_links(void)
{
    struct stat st, of_link;
    struct dirent *entry;
    unsigned found = 0;
    DIR *dir;

    CHECK(enter_folder());
    CHECK(write_file("a", "text", 0640) == 0 && mkdir("d", 0755) == 0);
    CHECK(stat("a", &st) == 0 && st.st_nlink == 1);
    CHECK(link("a", "b") == 0 && link("b", "d/c") == 0);
    CHECK(has_names("a", st.st_ino, 3) && has_names("d/c", st.st_ino, 3));
    CHECK_EQ(write_file("b", "longer", 0), 0);
    CHECK(file_is("a", "longer") && file_is("d/c", "longer"));
    CHECK(chmod("d/c", 0600) == 0 && stat("a", &of_link) == 0);
    CHECK_EQ(of_link.st_mode & 0777, 0600);
    dir = opendir(".");
    CHECK(dir != NULL);
    while ((entry = readdir(dir)) != NULL) {
        found += entry->d_ino == st.st_ino && entry->d_type == DT_REG;
    }
    CHECK(closedir(dir) == 0 && found == 2);
    /* The first name is as good as any other. */
    CHECK(unlink("a") == 0 && has_names("b", st.st_ino, 2));
    CHECK(rename("b", "d/c") == 0 && has_names("b", st.st_ino, 2)); /* none */
    CHECK(rename("d/c", "e") == 0 && has_names("e", st.st_ino, 2));
    CHECK(write_file("f", "other", 0644) == 0 && rename("f", "b") == 0);
    CHECK(file_is("b", "other") && has_names("e", st.st_ino, 1));
    CHECK(file_is("e", "longer") && unlink("e") == 0 && unlink("b") == 0);
    /* Of a symbolic link: of itself, or of what it leads to. */
    CHECK(symlink("nowhere", "l") == 0 && link("l", "m") == 0);
    CHECK(lstat("m", &st) == 0 && S_ISLNK(st.st_mode) && st.st_nlink == 2);
    errno = 0;
    CHECK(linkat(AT_FDCWD, "l", AT_FDCWD, "n", AT_SYMLINK_FOLLOW) == -1 &&
          errno == ENOENT);
    CHECK(unlink("l") == 0 && unlink("m") == 0 && rmdir("d") == 0);
    return leave_folder();
}

static bool link_fails(const char *from, const char *to, int flags, int want)
{
    errno = 0;
    return linkat(AT_FDCWD, from, AT_FDCWD, to, flags) == -1 && errno == want;
}

static bool bad_hard_links(void)
{
    struct stat st;
    int fd;

    CHECK(enter_folder());
    CHECK(write_file("a", "1", 0644) == 0 && write_file("b", "2", 0644) == 0);
    CHECK_EQ(mkdir("d", 0755), 0);
    CHECK(link_fails("a", "b", 0, EEXIST) && link_fails("a", "a", 0, EEXIST));
    CHECK(link_fails("d", "e", 0, EPERM) && link_fails("d", "b", 0, EEXIST));
    CHECK(link_fails("x", "e", 0, ENOENT) && link_fails("a", "x/e", 0, ENOENT));
    CHECK(link_fails("a", "b/e", 0, ENOTDIR) && link_fails("", "e", 0, ENOENT));
    CHECK(link_fails("a", "e/", 0, ENOENT) && link_fails("a", "e", 1, EINVAL));
    CHECK(link_fails((char *)8, "e", 0, EFAULT));
    CHECK(link_fails("a", (char *)8, 0, EFAULT));
    CHECK(link_fails("/proc/self/stat", "e", 0, EXDEV));
    CHECK(link_fails("a", "/proc/e", 0, EXDEV) ||
          link_fails("a", "/proc/e", 0, ENOENT));
    fd = open("b", O_RDONLY);
    CHECK(fd >= 0 && unlink("b") == 0 && fstat(fd, &st) == 0);
    CHECK_EQ(st.st_nlink, 0);
    CHECK(close(fd) == 0 && unlink("a") == 0 && rmdir("d") == 0);
    return leave_folder();
}

static bool listing(void)
{
    char name[16];
    DIR *dir;
    unsigned found = 0, dots = 0;

    CHECK(enter_folder());
    for (unsigned i = 0; i < 300; i++) {
        snprintf(name, sizeof(name), "file%u", i);
        CHECK_EQ(write_file(name, "", 0644), 0);
    }
    dir = opendir(".");
    CHECK(dir != NULL);
    /* Removing what was listed hides nothing of what was not. */
    for (struct dirent *d = readdir(dir); d != NULL; d = readdir(dir)) {
        if (d->d_name[0] == '.') {
            dots++;
            continue;
        }
        CHECK_EQ(d->d_type, DT_REG);
        CHECK_EQ(unlink(d->d_name), 0);
        found++;
    }
    closedir(dir);
    CHECK_EQ(found, 300);
    CHECK_EQ(dots, 2);
    return leave_folder();
}

static bool relative_to_descriptors(void)
{
    struct stat st;
    int dir, fd;

    CHECK(enter_folder());
    CHECK_EQ(mkdir("d", 0755), 0);
    dir = open("d", O_RDONLY | O_DIRECTORY);
    CHECK(dir >= 0);
    fd = openat(dir, "f", O_WRONLY | O_CREAT, 0640);
    CHECK(fd >= 0 && close(fd) == 0);
    CHECK(fstatat(dir, "f", &st, 0) == 0 && (st.st_mode & 0777) == 0640);
    CHECK(faccessat(dir, "f", X_OK, 0) == -1 && errno == EACCES);
    CHECK_EQ(fchmodat(dir, "f", 0755, 0), 0);
    CHECK_EQ(faccessat(dir, "f", X_OK, 0), 0);
    CHECK(fchdir(dir) == 0 && access("f", F_OK) == 0 && chdir("..") == 0);
    CHECK_EQ(unlinkat(dir, "f", 0), 0);
    CHECK_EQ(unlinkat(AT_FDCWD, "d", AT_REMOVEDIR), 0);
    errno = 0;
    CHECK(openat(1000, "f", O_RDONLY) == -1 && errno == EBADF);
    CHECK_EQ(close(dir), 0);
    return leave_folder();
}

static bool pipes_block(void)
{
    char buf[70000], c;
    int fd[2], status;
    ssize_t n, total = 0;
    pid_t pid;

    CHECK_EQ(pipe(fd), 0);
    pid = fork();
    if (pid == 0) {
        memset(buf, 'p', sizeof(buf));
        close(fd[0]);
        for (int i = 0; i < 3; i++) { /* more than a pipe holds */
            if (write(fd[1], buf, sizeof(buf)) != sizeof(buf)) {
                _exit(1);
            }
        }
        _exit(0);
    }
    CHECK_EQ(close(fd[1]), 0);
    while ((n = read(fd[0], buf, 5000)) > 0) {
        total += n;
    }
    CHECK(n == 0 && total == 3 * (ssize_t)sizeof(buf));
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    CHECK_EQ(read(fd[0], &c, 1), 0);
    errno = 0;
    CHECK(lseek(fd[0], 0, SEEK_SET) == -1 && errno == ESPIPE);
    CHECK(pread(fd[0], &c, 1, 0) == -1 && errno == ESPIPE);
    CHECK(write(fd[0], &c, 1) == -1 && errno == EBADF);
    return true;
}

static bool pipes_without_waiting(void)
{
    static char buf[4096];
    int fd[2], waiting = 0;
    unsigned pages = 0;

    CHECK_EQ(pipe2(fd, O_NONBLOCK | O_CLOEXEC), 0);
    errno = 0;
    CHECK(read(fd[0], buf, 1) == -1 && errno == EAGAIN);
    while (write(fd[1], buf, sizeof(buf)) == sizeof(buf)) {
        pages++;
    }
    CHECK(errno == EAGAIN && pages == 16);
    CHECK_EQ(read(fd[0], buf, 1), 1);
    CHECK(write(fd[1], buf, 2) == -1 && errno == EAGAIN);
    CHECK(ioctl(fd[0], FIONREAD, &waiting) == 0 && waiting == 65535);
    CHECK_EQ(fcntl(fd[0], F_GETFD), FD_CLOEXEC);
    CHECK_EQ(fcntl(fd[0], F_GETFL) & O_NONBLOCK, O_NONBLOCK);
    return true;
}

static uint8_t pattern(unsigned at)
{
    return (uint8_t)(at * 7 + at / 251);
}

/* The ring is full, and its end is in the page of its beginning. */
static bool pipe_goes_round(void)
{
    static uint8_t out[65536 + 300], in[65536];
    int fd[2];

    for (unsigned i = 0; i < sizeof(out); i++) {
        out[i] = pattern(i);
    }
    CHECK_EQ(pipe2(fd, O_NONBLOCK), 0);
    CHECK_EQ(write(fd[1], out, 65536), 65536);
    for (unsigned i = 0; i < 3; i++) {
        CHECK_EQ(read(fd[0], in, 100), 100);
        CHECK(memcmp(in, out + i * 100, 100) == 0);
        errno = 0;
        CHECK(write(fd[1], out + 65536 + i * 100, 100) == 100 ||
              errno == EAGAIN); /* Linux fills only whole pages */
        if (errno == EAGAIN) {
            return true;
        }
    }
    CHECK_EQ(read(fd[0], in, 60000), 60000);
    CHECK(memcmp(in, out + 300, 60000) == 0);
    CHECK_EQ(read(fd[0], in, sizeof(in)), 5536);
    CHECK(memcmp(in, out + 60300, 5536) == 0);
    return true;
}

static bool polling(void)
{
    struct pollfd fds[3];
    struct timeval none = {0, 0};
    fd_set set;
    int fd[2];
    uint64_t before;

    CHECK_EQ(pipe(fd), 0);
    fds[0] = (struct pollfd){fd[0], POLLIN, 0};
    fds[1] = (struct pollfd){fd[1], POLLOUT, 0};
    fds[2] = (struct pollfd){-1, POLLIN, 7};
    CHECK_EQ(poll(fds, 3, 0), 1);
    CHECK(fds[0].revents == 0 && fds[1].revents == POLLOUT);
    CHECK_EQ(fds[2].revents, 0);
    before = now_ns();
    CHECK_EQ(poll(fds, 1, 30), 0);
    CHECK(now_ns() - before >= 30000000);
    if (fork() == 0) {
        usleep(20000);
        _exit(write(fd[1], "x", 1) == 1 ? 0 : 1);
    }
    CHECK(poll(fds, 1, 20000) == 1 && fds[0].revents == POLLIN);
    FD_ZERO(&set);
    FD_SET(fd[0], &set);
    CHECK(select(fd[0] + 1, &set, NULL, NULL, &none) == 1);
    CHECK(FD_ISSET(fd[0], &set));
    CHECK(wait(NULL) > 0 && close(fd[1]) == 0);
    CHECK(poll(fds, 1, 0) == 1 && fds[0].revents == (POLLIN | POLLHUP));
    fds[0].fd = 900;
    CHECK(poll(fds, 1, 0) == 1 && fds[0].revents == POLLNVAL);
    return true;
}

static bool named_pipe(void)
{
    char buf[4];
    int fd;

    CHECK(enter_folder());
    CHECK_EQ(mkfifo("p", 0600), 0);
    errno = 0;
    CHECK(open("p", O_WRONLY | O_NONBLOCK) == -1 && errno == ENXIO);
    if (fork() == 0) {
        fd = open("p", O_WRONLY); /* waits for the reader */
        _exit(write(fd, "abc", 3) == 3 ? 0 : 1);
    }
    fd = open("p", O_RDONLY);
    CHECK(fd >= 0 && read(fd, buf, 4) == 3 && memcmp(buf, "abc", 3) == 0);
    CHECK_EQ(read(fd, buf, 4), 0);
    CHECK(wait(NULL) > 0 && close(fd) == 0 && unlink("p") == 0);
    return leave_folder();
}

static bool many_descriptors(void)
{
    int fd = open("/dev/null", O_RDONLY), last = -1, n = 0;

    CHECK(fd >= 0 && fcntl(fd, F_DUPFD, 200) == 200 && dup2(fd, 500) == 500);
    CHECK_EQ(fcntl(500, F_GETFD), 0);
    for (;;) {
        int copy = dup(fd);

        if (copy < 0) {
            break;
        }
        last = copy;
        n++;
    }
    CHECK(errno == EMFILE && n > 100 && last > 200);
    errno = 0;
    CHECK(dup2(fd, 1000000) == -1 && errno == EBADF);
    CHECK(syscall(SYS_dup3, fd, fd, 0) == -1 && errno == EINVAL);
    return true;
}

static bool devices(void)
{
    char buf[16] = "123";
    struct stat st;
    int zero = open("/dev/zero", O_RDWR), full = open("/dev/full", O_RDWR);

    CHECK(zero >= 0 && read(zero, buf, 3) == 3 && buf[0] == 0 && buf[2] == 0);
    errno = 0;
    CHECK(full >= 0 && write(full, "x", 1) == -1 && errno == ENOSPC);
    CHECK(stat("/dev/null", &st) == 0 && S_ISCHR(st.st_mode));
    CHECK_EQ(st.st_rdev, 0x103);
    CHECK(!isatty(zero));
    return true;
}

/* A script of which a shell knows nothing: its interpreter is this program. */
static bool scripts(void)
{
    static char name[] = "./script", *argv[] = {name, NULL},
                env[] = "SELFTEST=yes", *envp[] = {env, NULL};
    char self[64];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    char text[128];
    int status;
    pid_t pid;

    if (access("/bin/selftest", X_OK) != 0) {
        return test_skip("no /bin/selftest");
    }
    CHECK(n > 0);
    self[n] = '\0';
    CHECK(strcmp(self, "/bin/selftest") == 0 && enter_folder());
    snprintf(text, sizeof(text), "#! %s --child \nnot read\n", self);
    CHECK_EQ(write_file("script", text, 0755), 0);
    pid = fork();
    if (pid == 0) {
        /* selftest --child ./script: a word that is not "word" gives 1 */
        execve(name, argv, envp);
        _exit(99);
    }
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 1);
    CHECK_EQ(write_file("script", "#!/bin/no-such-thing\n", 0755), 0);
    errno = 0;
    CHECK(execve(name, argv, envp) == -1 && errno == ENOENT);
    CHECK_EQ(write_file("script", "echo\n", 0755), 0);
    CHECK(execve(name, argv, envp) == -1 && errno == ENOEXEC);
    CHECK_EQ(chmod("script", 0644), 0);
    CHECK(execve(name, argv, envp) == -1 && errno == EACCES);
    CHECK_EQ(unlink("script"), 0);
    return leave_folder();
}

static bool argument_limits(void)
{
    static char name[] = "/bin/selftest", big[200000];
    char *argv[] = {name, big, NULL};

    memset(big, 'a', sizeof(big) - 1); /* a string may have 128 KiB */
    errno = 0;
    CHECK(execve(name, argv, NULL) == -1 &&
          (errno == E2BIG || errno == ENOENT));
    if (errno == ENOENT) {
        return test_skip("no /bin/selftest");
    }
    return true;
}

static const struct test tests[] = {
    {"files keep what is written", written_files},
    {"holes are zero", holes},
    {"vectors are written and read in order", vectors},
    {"names are found, refused and changed", names},
    {"symbolic links lead where they say", links},
    {"a file has many names, each as good", hard_links},
    {"bad hard links are refused", bad_hard_links},
    {"a directory can be emptied while it is listed", listing},
    {"names relative to a descriptor", relative_to_descriptors},
    {"a full pipe blocks, an empty one ends", pipes_block},
    {"pipes that do not wait", pipes_without_waiting},
    {"a pipe's contents go round", pipe_goes_round},
    {"poll and select tell what is ready", polling},
    {"a named pipe joins two processes", named_pipe},
    {"a process has many descriptors, not all", many_descriptors},
    {"devices answer by their rule", devices},
    {"a script starts its interpreter", scripts},
    {"too long an argument is refused", argument_limits},
};

TEST_TABLE(tests_file, "file", tests);
