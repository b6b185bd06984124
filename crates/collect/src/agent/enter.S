/* Where a patched function goes on: with %r11 = its `struct hook`, and everything else as at its entry. What the function was
 * given is given to it again, its arguments on the stack as a copy; it returns here, so that nobody's return address is
 * replaced. Neither this nor what it calls touches a vector register.
 */
	.text

/* of struct pt_regs */
	.set REGS, 176
	.set RDX, 96
	.set RCX, 88
	.set R8, 72
	.set R9, 64
	.set RSI, 104
	.set RDI, 112
	.set RAX, 80
	.set R10, 56
	.set RBP, 32
	.set RIP, 128
	.set RSP, 152
/* of struct hook */
	.set COPY, 0
	.set ADDRESS, 8
	.set ON, 40
	.set PLAIN, 56
/* of struct door */
	.set WAKE, 12
/* of enum hook_state */
	.set PASSES, 0
	.set COUNTS, 2
/* of the epoch in struct membership */
	.set DORMANT, 0x80000000

	.globl agent_call
	.hidden agent_call
	.type agent_call, @function
	.balign 64
agent_call:
	.cfi_startproc
	endbr64
	cmpl $PASSES, ON(%r11)
	je 6f
5:	push %rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	mov %rsp, %rbp
	.cfi_def_cfa_register %rbp
	push %r11
	push %r11
	sub $REGS, %rsp
	mov %rdi, RDI(%rsp)
	mov %rsi, RSI(%rsp)
	mov %rdx, RDX(%rsp)
	mov %rcx, RCX(%rsp)
	mov %r8, R8(%rsp)
	mov %r9, R9(%rsp)
	mov %rax, RAX(%rsp)
	mov %r10, R10(%rsp)
	mov (%rbp), %rax
	mov %rax, RBP(%rsp)
	mov ADDRESS(%r11), %rax
	mov %rax, RIP(%rsp)
	lea 8(%rbp), %rax
	mov %rax, RSP(%rsp)
	mov %rsp, %rdi
	mov %r11, %rsi
	call agent_enter
	test %eax, %eax
	jne 1f

	/* nothing follows from its return: it returns to its caller */
	mov RDI(%rsp), %rdi
	mov RSI(%rsp), %rsi
	mov RDX(%rsp), %rdx
	mov RCX(%rsp), %rcx
	mov R8(%rsp), %r8
	mov R9(%rsp), %r9
	mov RAX(%rsp), %rax
	mov R10(%rsp), %r10
	mov -8(%rbp), %r11
	.cfi_remember_state
	leave
	.cfi_def_cfa %rsp, 8
	.cfi_restore %rbp
	jmp *COPY(%r11)
	.cfi_restore_state

	/* it passes, unless it is a forked child's first call, or gpuscope is at the door */
	.cfi_remember_state
	.cfi_def_cfa %rsp, 8
	.cfi_restore %rbp
6:	cmpl $0, membership(%rip)
	je 5b
	cmpl $0, door+WAKE(%rip)
	jne 5b
	jmp *COPY(%r11)
	.cfi_restore_state

	/* as many words of the stack as it says, and one */
1:	mov -8(%rbp), %r11
	mov %rsp, %r10
	lea -1(%rax), %ecx
	lea 1(%rcx), %eax
	and $-2, %eax
	shl $3, %eax
	sub %rax, %rsp
2:	cmp $6, %ecx
	jb 4f
	mov 8(%rbp,%rcx,8), %rax
	mov (%rbp,%rcx,8), %rdx
	mov -8(%rbp,%rcx,8), %rsi
	mov -16(%rbp,%rcx,8), %rdi
	mov -24(%rbp,%rcx,8), %r8
	mov -32(%rbp,%rcx,8), %r9
	mov %rax, -8(%rsp,%rcx,8)
	mov %rdx, -16(%rsp,%rcx,8)
	mov %rsi, -24(%rsp,%rcx,8)
	mov %rdi, -32(%rsp,%rcx,8)
	mov %r8, -40(%rsp,%rcx,8)
	mov %r9, -48(%rsp,%rcx,8)
	sub $6, %ecx
	jmp 2b
4:	test %ecx, %ecx
	je 3f
	mov 8(%rbp,%rcx,8), %rax
	mov %rax, -8(%rsp,%rcx,8)
	dec %ecx
	jmp 4b
3:	mov RDI(%r10), %rdi
	mov RSI(%r10), %rsi
	mov RDX(%r10), %rdx
	mov RCX(%r10), %rcx
	mov R8(%r10), %r8
	mov R9(%r10), %r9
	mov RAX(%r10), %rax
	mov R10(%r10), %r10
	call *COPY(%r11)
	lea -(REGS+16)(%rbp), %rsp
	mov %rax, RAX(%rsp)
	mov %rdx, RDX(%rsp)
	mov 8(%rbp), %rax
	mov %rax, RIP(%rsp)
	mov (%rbp), %rax
	mov %rax, RBP(%rsp)
	lea 16(%rbp), %rax
	mov %rax, RSP(%rsp)
	mov %rsp, %rdi
	mov -8(%rbp), %rsi
	call agent_leave
	mov RAX(%rsp), %rax
	mov RDX(%rsp), %rdx
	leave
	.cfi_def_cfa %rsp, 8
	.cfi_restore %rbp
	ret
	.cfi_endproc
	.size agent_call, .-agent_call

/* Within a function, with %r11 = its `struct hook`, above which the thunk's return address, %r11 and 128 bytes of the
 * function's lie on the stack. Nothing is changed but %r11.
 */
	.globl agent_passed
	.hidden agent_passed
	.type agent_passed, @function
	.balign 64
agent_passed:
	.cfi_startproc
	endbr64
	pushfq
	.cfi_adjust_cfa_offset 8
	cmpl $0, ON(%r11)
	jne 7f
	cmpl $0, membership(%rip)
	je 7f
	cmpl $0, door+WAKE(%rip)
	jne 7f
	popfq
	.cfi_remember_state
	.cfi_adjust_cfa_offset -8
	ret
	.cfi_restore_state
7:	push %rbp
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rbp, 0
	mov %rsp, %rbp
	.cfi_def_cfa_register %rbp
	cld
	and $-16, %rsp
	sub $REGS, %rsp
	mov %r15, 0(%rsp)
	mov %r14, 8(%rsp)
	mov %r13, 16(%rsp)
	mov %r12, 24(%rsp)
	mov %rbx, 40(%rsp)
	mov %r10, R10(%rsp)
	mov %r9, R9(%rsp)
	mov %r8, R8(%rsp)
	mov %rax, RAX(%rsp)
	mov %rcx, RCX(%rsp)
	mov %rdx, RDX(%rsp)
	mov %rsi, RSI(%rsp)
	mov %rdi, RDI(%rsp)
	mov (%rbp), %rax
	mov %rax, RBP(%rsp)
	mov 24(%rbp), %rax
	mov %rax, 48(%rsp)
	mov ADDRESS(%r11), %rax
	mov %rax, RIP(%rsp)
	lea 160(%rbp), %rax
	mov %rax, RSP(%rsp)
	mov %rsp, %rdi
	mov %r11, %rsi
	call agent_place
	mov R10(%rsp), %r10
	mov R9(%rsp), %r9
	mov R8(%rsp), %r8
	mov RAX(%rsp), %rax
	mov RCX(%rsp), %rcx
	mov RDX(%rsp), %rdx
	mov RSI(%rsp), %rsi
	mov RDI(%rsp), %rdi
	leave
	.cfi_def_cfa %rsp, 16
	.cfi_restore %rbp
	popfq
	.cfi_adjust_cfa_offset -8
	ret
	.cfi_endproc
	.size agent_passed, .-agent_passed

/* In place of the dynamic linker's notification, which follows. */
	.globl agent_linker
	.hidden agent_linker
	.type agent_linker, @function
	.balign 16
agent_linker:
	.cfi_startproc
	endbr64
	push %rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	mov %rsp, %rbp
	.cfi_def_cfa_register %rbp
	push %r11
	push %rax
	push %rdi
	push %rsi
	push %rdx
	push %rcx
	push %r8
	push %r9
	push %r10
	push %r10
	call agent_libraries
	pop %r10
	pop %r10
	pop %r9
	pop %r8
	pop %rcx
	pop %rdx
	pop %rsi
	pop %rdi
	pop %rax
	pop %r11
	pop %rbp
	.cfi_def_cfa %rsp, 8
	.cfi_restore %rbp
	jmp *%r11
	.cfi_endproc
	.size agent_linker, .-agent_linker

/* What the jump of a patched function leads to: a copy of this for each, with its holes filled in, in two pieces. Between them
 * lies what was moved of the function, as most of its calls go on there at once: nobody is recorded, or nothing is wanted of
 * the call but its number. No other register than %r11 is free here, nor is the stack below what the function may use.
 */
	.set HOLE, 0x7fffffff
	.set LONG_HOLE, 0x7fffffff7fffffff
	.macro hole name, back
	.globl hole_\name
	.hidden hole_\name
hole_\name = . - \back
	.endm
	.macro piece name
	.globl \name
	.hidden \name
\name:
	.endm

	.section .rodata.thunk, "a", @progbits
	piece thunk_head
	movabs $LONG_HOLE, %r11
	hole membership, 8
	cmpl $0, HOLE(%r11)
	hole wake, 5
	.byte 0x0f, 0x85 /* jne, to where it is told */
	.long HOLE
	hole told, 4
	testl $DORMANT, (%r11)
	.byte 0x0f, 0x84 /* je, to where it is counted */
	.long HOLE
	hole counted, 4
	piece thunk_head_end

	piece thunk_tail
	cmpl $0, HOLE(%r11)
	hole counting, 5
	je 2f
	mov (%r11), %r11d
	cmp %fs:HOLE, %r11d
	hole epoch, 4
	jne 2f
	cmpq $0, %fs:HOLE
	hole has_self, 5
	je 2f
	movabs $LONG_HOLE, %r11
	hole hook, 8
	cmpl $COUNTS, ON(%r11)
	jne 3f
	mov PLAIN(%r11), %r11
	add %fs:HOLE, %r11
	hole self, 4
	incq (%r11)
	.byte 0xe9 /* jmp, to what was moved */
	.long HOLE
	hole moved, 4
	piece thunk_told
2:	movabs $LONG_HOLE, %r11
	hole told_hook, 8
3:	.byte 0xff, 0x25 /* jmp *, to agent_call */
	.long HOLE
	hole agent, 4
	piece thunk_tail_end
	.org thunk_head + 128 /* THUNK_BYTES: no more than these */

	.section .note.GNU-stack, "", @progbits
