/* The child of a vfork runs on its parent's memory until it calls exec: what it opens and closes are its own descriptors, so our table of
   the parent's must not change. A function in C cannot return twice on one stack; this one keeps the return address in a
   register, as the C library's does, and notes in the thread which of the two it is. */
#include <errno.h>
#include <stdint.h>

extern _Thread_local uint32_t ts_vforked;

__attribute__((used, visibility("hidden"))) int ts_vfork_failed(int error)
{
    errno = -error;
    return -1;
}

#if defined(__x86_64__)
__asm__(".text\n"
        ".globl vfork\n"
        ".type vfork,@function\n"
        "vfork:\n"
        "  popq %rdi\n"
        "  movq ts_vforked@gottpoff(%rip), %rdx\n"
        "  movl %fs:(%rdx), %esi\n"
        "  movl $58, %eax\n"
        "  syscall\n"
        "  pushq %rdi\n"
        "  testl %eax, %eax\n"
        "  jz 2f\n"
        "  movl %esi, %fs:(%rdx)\n" /* the parent goes on when the child is gone, and is again what it was */
        "  js 1f\n"
        "  ret\n"
        "2: movl $1, %fs:(%rdx)\n"
        "  ret\n"
        "1: movl %eax, %edi\n"
        "  jmp ts_vfork_failed\n"
        ".size vfork, .-vfork\n");
#elif defined(__aarch64__)
__asm__(".text\n"
        ".globl vfork\n"
        ".type vfork,%function\n"
        "vfork:\n"
        "  mov x0, #0x4111\n" /* CLONE_VM | CLONE_VFORK | SIGCHLD */
        "  mov x1, xzr\n"
        "  mov x2, xzr\n"
        "  mov x3, xzr\n"
        "  mov x4, xzr\n"
        "  adrp x5, :gottprel:ts_vforked\n"
        "  ldr x5, [x5, #:gottprel_lo12:ts_vforked]\n"
        "  mrs x6, tpidr_el0\n"
        "  ldr w7, [x6, x5]\n"
        "  mov x8, #220\n"
        "  svc #0\n"
        "  mov w9, #1\n"
        "  cmp w0, #0\n"
        "  csel w7, w9, w7, eq\n"
        "  str w7, [x6, x5]\n"
        "  tbnz w0, #31, 1f\n"
        "  ret\n"
        "1: b ts_vfork_failed\n"
        ".size vfork, .-vfork\n");
#endif
