/* Many descriptors, and all the ways in which their numbers change hands: descriptors ROOT AMOUNT. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static char path[4096], other[4096], buffer[100];

static void many(int amount)
{
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max < (rlim_t)amount + 100 ? limit.rlim_max : (rlim_t)amount + 100;
    setrlimit(RLIMIT_NOFILE, &limit);
    int *fds = calloc((size_t)amount, sizeof *fds);
    for (int i = 0; i < amount; i++) fds[i] = open(i % 3 ? path : other, O_RDONLY | (i % 2 ? O_CLOEXEC : 0));
    for (int i = 0; i < amount; i++) pread(fds[i], buffer, 1 + (size_t)i % 50, 0);
    for (int i = 0; i < amount / 4; i++) close(fds[i]);
    close_range((unsigned)fds[amount / 4], (unsigned)fds[amount / 2] - 1, 0);
    close_range((unsigned)fds[amount / 2], ~0u, CLOSE_RANGE_CLOEXEC); /* closes nothing yet */
    for (int i = amount / 2; i < amount; i++) pread(fds[i], buffer, 5, 0);
    closefrom(fds[amount / 2]);
    int ends[2]; /* numbers that were a tier's */
    for (int i = 0; i < 50; i++) {
        socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
        write(ends[0], buffer, 10), read(ends[1], buffer, 10);
        pipe(ends);
        write(ends[1], buffer, 10), read(ends[0], buffer, 10);
    }
}

static void hand_over(void)
{
    int fd = open(path, O_RDONLY), ends[2];
    pipe(ends);
    for (int i = 0; i < 5; i++) {
        write(ends[1], buffer, 3);
        dup2(ends[0], fd), read(fd, buffer, 3); /* a pipe where the tier's file was */
        int again = open(other, O_RDONLY);
        dup3(again, fd, O_CLOEXEC), read(fd, buffer, 4); /* and a tier's file where the pipe was */
        int high = fcntl(fd, F_DUPFD_CLOEXEC, 500 + i), low = fcntl(again, F_DUPFD, 0), same = dup(high);
        read(high, buffer, 5), read(low, buffer, 6), read(same, buffer, 7);
        close(again), close(high), close(low), close(same);
    }
    close(fd), close(ends[0]), close(ends[1]);
}

/* By descriptors that came through a socket: nobody saw them being opened. */
static void pass(void)
{
    int ends[2], fd = open(path, O_RDONLY);
    socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
    char room[CMSG_SPACE(sizeof fd)] = {0}, byte = 0;
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    struct cmsghdr *control = CMSG_FIRSTHDR(&message);
    control->cmsg_level = SOL_SOCKET, control->cmsg_type = SCM_RIGHTS, control->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(control), &fd, sizeof fd);
    sendmsg(ends[0], &message, 0);
    close(fd);
    recvmsg(ends[1], &message, 0);
    memcpy(&fd, CMSG_DATA(control), sizeof fd);
    read(fd, buffer, 9);
    close(fd), close(ends[0]), close(ends[1]);
}

int main(int count, char **arguments)
{
    if (count < 3) return 2;
    snprintf(path, sizeof path, "%s/one/data.bin", arguments[1]);
    snprintf(other, sizeof other, "%s/two/inner/x", arguments[1]);
    hand_over();
    pass();
    int fds[] = {open(path, O_RDONLY), open(path, O_RDONLY | O_CLOEXEC)};
    if (count == 3) {
        char numbers[2][20];
        snprintf(numbers[0], 20, "%d", fds[0]), snprintf(numbers[1], 20, "%d", fds[1]);
        if (fork() == 0) execl(arguments[0], arguments[0], arguments[1], arguments[2], numbers[0], numbers[1], NULL);
    } else { /* after the exec: the first is still there, the second is not; and its number may be another file's */
        read(atoi(arguments[3]), buffer, 11);
        read(atoi(arguments[4]), buffer, 12);
        return 0;
    }
    close(fds[0]), close(fds[1]);
    many(atoi(arguments[2]));
    return 0;
}
