/* Streams of the C library in random order: stdio ROOT SEED STEPS [FILE]. The same seed does the same. Line-buffered files
   are left out: how often those are written depends on every character. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char buffer[1 << 20];
static unsigned long dice;

static unsigned long roll(unsigned long below)
{
    dice = dice * 6364136223846793005u + 1442695040888963407u;
    return (dice >> 33) % below;
}

static size_t some_bytes(void)
{
    static const size_t around[] = {0, 1, 2, 3, 100, 127, 128, 129, 1000, 4095, 4096, 4097, 8191, 8192, 8193, 12288, 20000, 65536, 70001, 300000};
    return roll(3) ? around[roll(sizeof around / sizeof *around)] : roll(30000);
}

static void choose_buffer(FILE *stream)
{
    static char own[2][70000];
    switch (roll(8)) {
    case 0: setvbuf(stream, NULL, _IONBF, 0); break;
    case 1: setvbuf(stream, own[0], _IOFBF, 512 + roll(2) * 65536); break;
    case 2: setvbuf(stream, own[1], _IOFBF, 100 + roll(100)); break;
    }
}

static void read_step(FILE *stream)
{
    static char *line;
    static size_t room;
    switch (roll(19)) {
    case 16: ungetc('q', stream); break;
    case 17: fscanf(stream, "%*d,%*d,x%*d\n"); break;
    case 18: fread(buffer, 1, 4096, stream); break;
    case 0: case 1: case 2: fread(buffer, 1, some_bytes(), stream); break;
    case 3: fread(buffer, 8, some_bytes() / 8, stream); break;
    case 4: fread_unlocked(buffer, 1, some_bytes(), stream); break;
    case 5: fgets(buffer, 1 + (int)some_bytes(), stream); break;
    case 6: getline(&line, &room, stream); break;
    case 7: getdelim(&line, &room, 'x', stream); break;
    case 8: for (unsigned long i = roll(300); i; i--) fgetc(stream); break;
    case 9: for (unsigned long i = roll(300); i; i--) getc_unlocked(stream); break;
    case 10: fseek(stream, (long)roll(310000), SEEK_SET); break;
    case 11: fseek(stream, (long)roll(9000) - 4500, SEEK_CUR); break;
    case 12: fseeko(stream, -(off_t)roll(5000), SEEK_END); break;
    case 13: ftell(stream); break;
    case 14: if (!roll(4)) rewind(stream); break;
    case 15: fgets_unlocked(buffer, 1 + (int)roll(200), stream); break;
    }
}

static void read_file(const char *path, unsigned long steps)
{
    FILE *stream = fopen(path, "rb");
    choose_buffer(stream);
    while (steps--) read_step(stream);
    fclose(stream);
}

static void write_step(FILE *stream)
{
    static char text[9000];
    memset(text, 'y', roll(sizeof text - 1));
    text[roll(sizeof text)] = 0;
    switch (roll(11)) {
    case 10: for (unsigned long i = roll(30); i; i--) fprintf(stream, "%lu,%s\n", i * i, "some text"); break;
    case 0: case 1: case 2: fwrite(buffer, 1, some_bytes(), stream); break;
    case 3: fwrite(buffer, 100, some_bytes() / 100, stream); break;
    case 4: fwrite_unlocked(buffer, 1, some_bytes(), stream); break;
    case 5: fflush(stream); break;
    case 6: for (unsigned long i = roll(300); i; i--) fputc('z', stream); break;
    case 7: for (unsigned long i = roll(300); i; i--) putc_unlocked('z', stream); break;
    case 8: fputs(text, stream); break;
    case 9: if (!roll(3)) fseek(stream, (long)roll(100000), SEEK_SET); break;
    }
}

static void write_file(const char *path, unsigned long steps)
{
    FILE *stream = fopen(path, roll(4) ? "wb" : "ab");
    choose_buffer(stream);
    while (steps--) write_step(stream);
    fclose(stream);
}

/* Never closed: written when the program ends. */
static void leave_open(const char *root)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/two/left", root);
    FILE *left = fopen(path, "w");
    for (int i = 0; i < 3000; i++) fprintf(left, "line %d\n", i);
    for (int i = 0; i < 300; i++) printf("line %d\n", i), puts("and another"), putchar('x');
    fflush(NULL);
    fprintf(left, "the last");
    printf("the end");
}

int main(int count, char **arguments)
{
    char path[4096];
    if (count < 4) return 2;
    memset(buffer, 'b', sizeof buffer);
    unsigned long first = strtoul(arguments[2], NULL, 10), steps = strtoul(arguments[3], NULL, 10);
    unsigned long only = count > 4 ? strtoul(arguments[4], NULL, 10) : 0;
    for (unsigned long file = only; file < (count > 4 ? only + 1 : 40); file++) { /* a file each, so that a difference can be looked up */
        dice = first * 1000 + file;
        snprintf(path, sizeof path, "%s/one/%s", arguments[1], roll(2) ? "data.bin" : "text.csv");
        read_file(path, steps);
        snprintf(path, sizeof path, "%s/two/stream-%lu", arguments[1], file);
        write_file(path, steps);
    }
    leave_open(arguments[1]);
    return 0;
}
