/* Static probes whose arguments lie in every kind of place, and some that must not be hooked. */
#include "static_probe.h"
#include <stdio.h>
#include <string.h>

static const unsigned words[4] = {1, 2, 0xfffffffd, 4};
static const char text[] = "first light";
struct pair {
	unsigned low, high;
};
static const struct pair pair = {640, 480};

void marked_places(void)
{
	__asm__ __volatile__(
		"mov $0x1122334455667788, %%rbx\n mov $-5, %%r12\n mov $0xfff6, %%r13d\n mov $-7, %%r14\n"
		"mov $0x8000000000000001, %%r15\n lea %0, %%rsi\n mov $2, %%edx\n mov $0x1ff, %%ecx\n"
		"mov $0x7000, %%r11d\n"
		"mov (%%rsi), %%eax\n mov $200, %%eax\n" /* memory that nobody touched is not there yet */
		PROBE_NOTE("nop", "marked", "places", "0",
			   "8@%%rbx -1@%%r12b 2@%%r13w -4@%%r14d 8@%%r15 -8@$-9 4@$4000000000 4@4(%%rsi) "
			   "-4@(%%rsi,%%rdx,4) 8@%%r11 1@%%cl 1@%%al")
		: : "m"(words[0]) : "rbx", "r12", "r13", "r14", "r15", "rsi", "rdx", "rcx", "r11", "rax");
}

void marked_pointers(void)
{
	/* what follows can be moved */
	__asm__ __volatile__(PROBE_NOTE("nop", "marked", "pointers", "0", "8@%0 8@%1 4@-20(%%rsp) 8@16(%2)")
			     "mov %%rsp, %%rsp\n mov %%rsp, %%rsp\n"
			     : : "r"(text), "r"(&pair), "r"((char *)0));
}

/* What lies below the stack pointer belongs to the function that is under way. */
__attribute__((naked)) long marked_red_zone(long value)
{
	__asm__("mov %rdi, -8(%rsp)\n"
		PROBE_NOTE("nop", "marked", "red_zone", "0", "8@-8(%rsp) 8@%rdi")
		"mov -8(%rsp), %rax\n ret\n");
}

__attribute__((naked)) long marked_long_nop(long value)
{
	__asm__("mov %rdi, -8(%rsp)\n"
		PROBE_NOTE(".byte 0x0f, 0x1f, 0x44, 0, 0", "marked", "long_nop", "0", "8@%rdi")
		"mov -8(%rsp), %rax\n ret\n");
}

void marked_others(void)
{
	__asm__ __volatile__(PROBE_NOTE("nop", "marked", "symbolic", "0", "8@words+4(%%rip)") : : );
	__asm__ __volatile__(PROBE_NOTE("nop", "marked", "short", "0", "8@%%rax") : : );
	__asm__ __volatile__(PROBE_NOTE("nop", "marked", "many_one", "0", "4@$1") : : );
	__asm__ __volatile__(PROBE_NOTE("nop", "marked", "many_two", "0", "4@$2") : : );
	__asm__ __volatile__(PROBE_NOTE("nop", "marked", "nowhere", "0x40", "8@%%rax") : : );
}
