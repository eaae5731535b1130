/* What programs do now and then, and what a recorder that is loaded into them may stumble over.
   usage: corners WHAT FILE [OTHER]   exit code 0: it went as it goes without a recorder */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *file, *other;
static FILE *shared;

static void handle(int number)
{
    (void)number;
    int fd = open(file, O_WRONLY | O_APPEND);
    if (write(fd, "x", 1) != 1 || close(fd)) _exit(9);
}

/* A handler on a stack of 8 KiB, which was once the usual size. */
static int little_signal_stack(void)
{
    stack_t stack = {.ss_sp = malloc(8192), .ss_size = 8192};
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK};
    return sigaltstack(&stack, NULL) || sigaction(SIGUSR1, &action, NULL) || raise(SIGUSR1);
}

static void *use_files(void *argument)
{
    char byte;
    int fd = open("/nonexistent/folder/file", O_RDONLY);
    FILE *stream = fopen(file, "r");
    struct stat about;
    (void)argument;
    if (fd >= 0 || !stream || fread(&byte, 1, 1, stream) != 1 || fclose(stream) || stat(file, &about)) _exit(9);
    return NULL;
}

static int little_thread_stack(void)
{
    pthread_attr_t little;
    pthread_t thread;
    pthread_attr_init(&little);
    pthread_attr_setstacksize(&little, PTHREAD_STACK_MIN);
    return pthread_create(&thread, &little, use_files, NULL) || pthread_join(thread, NULL);
}

static void *print_lines(void *argument)
{
    for (int i = 0; i < 20000; i++) fprintf(shared, "thread %d line %d\n", (int)(long)argument, i);
    return NULL;
}

static int shared_stream(void)
{
    pthread_t threads[4];
    shared = fopen(file, "w");
    for (long i = 0; i < 4; i++) pthread_create(&threads[i], NULL, print_lines, (void *)i);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    return fclose(shared);
}

static void *read_stream(void *argument)
{
    char buffer[100];
    return fread(buffer, 1, sizeof buffer, shared) ? argument : NULL;
}
static void *open_fifo(void *argument) { return open(other, O_RDONLY) < 0 ? argument : NULL; }
static void *read_fifo(void *argument)
{
    char byte;
    int fd = open(other, O_RDWR);
    return read(fd, &byte, 1) == 1 ? argument : NULL;
}

static int cancel(void *(*what)(void *))
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, what, NULL)) return 1;
    usleep(50000);
    return pthread_cancel(thread) || pthread_join(thread, NULL);
}

/* A stream whose reader was cancelled can still be closed; a thread that waits for the other end of a FIFO can be cancelled. */
static int cancelled(void)
{
    if (mkfifo(other, 0600)) return 1;
    shared = fdopen(open(other, O_RDWR), "r");
    return cancel(read_stream) || fclose(shared) || cancel(open_fifo);
}

static int read_much(void)
{
    static char buffer[1 << 16];
    int fd = open(file, O_RDONLY);
    for (int i = 0; i < 2000; i++)
        if (pread(fd, buffer, sizeof buffer, 0) < 0) return 1;
    return close(fd);
}

static int beside_waiting_opens(void)
{
    pthread_t thread;
    if (mkfifo(other, 0600)) return 1;
    for (int i = 0; i < 9; i++) pthread_create(&thread, NULL, open_fifo, NULL);
    usleep(50000);
    return read_much();
}

static int after_cancelled_reads(void)
{
    if (mkfifo(other, 0600)) return 1;
    for (int i = 0; i < 9; i++)
        if (cancel(read_fifo)) return 1;
    return read_much();
}

/* Descriptors that were closed without the C library are others' next. */
static int closed_unseen(void)
{
    int fds[2], first = open(file, O_RDONLY), second = open(file, O_RDONLY);
    char buffer[1000] = {0};
    syscall(SYS_close, first);
    syscall(SYS_close, second);
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds)) return 1;
    if (write(fds[0], buffer, sizeof buffer) != sizeof buffer) return 1;
    return read(fds[1], buffer, sizeof buffer) != sizeof buffer;
}

static int closes_a_million(void)
{
    for (int fd = 100; fd < 1000000; fd++) close(fd);
    char line[256];
    FILE *status = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof line, status))
        if (!strncmp(line, "VmRSS:", 6)) return atol(line + 6) > 8192;
    return 1;
}

static int stream_in_memory(void)
{
    char *memory;
    size_t bytes;
    FILE *stream = open_memstream(&memory, &bytes);
    for (int i = 0; i < 10000; i++) fprintf(stream, "line %d\n", i);
    return fclose(stream) || bytes < 10000;
}

static void fork_and_wait(int number)
{
    int status;
    (void)number;
    pid_t child = fork();
    if (child && (waitpid(child, &status, 0) != child || !WIFEXITED(status))) _exit(9);
}

/* While an operation is held up, a handler forks; both go on where it was. */
static int forks_in_the_middle(void)
{
    struct itimerval soon = {.it_value = {.tv_usec = 20000}};
    char byte;
    signal(SIGALRM, fork_and_wait);
    int fd = open(file, O_RDONLY);
    setitimer(ITIMER_REAL, &soon, NULL);
    return read(fd, &byte, 1) != 1 || close(fd);
}

/* A sandbox that knows no newer calls than open's. */
static int forbidden(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 437 /* openat2 */, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) return 1;
    for (int i = 0; i < 3; i++)
        if (close(open(file, O_RDONLY))) return 1;
    return 0;
}

int main(int count, char **words)
{
    static const struct {
        const char *name;
        int (*run)(void);
    } cases[] = {
        {"little_signal_stack", little_signal_stack}, {"little_thread_stack", little_thread_stack}, {"shared_stream", shared_stream},
        {"cancelled", cancelled}, {"beside_waiting_opens", beside_waiting_opens}, {"after_cancelled_reads", after_cancelled_reads},
        {"closed_unseen", closed_unseen}, {"closes_a_million", closes_a_million}, {"stream_in_memory", stream_in_memory},
        {"forks_in_the_middle", forks_in_the_middle}, {"forbidden", forbidden},
    };
    if (count < 3) return 2;
    file = words[2], other = words[count > 3 ? 3 : 2];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (!strcmp(words[1], cases[i].name)) _exit(cases[i].run());
    return 2;
}
