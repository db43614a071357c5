#include "kernels/emulator/fiber.h"

#include <pthread.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "kernels/base/error.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

#ifndef CONVOY_FIBER_UCONTEXT
// Saves the registers that a call keeps on the stack, leaves its pointer in *save and goes on at
// the stack pointer `load`, which an earlier call saved or prepare() made.
extern "C" void convoy_switch_stack(void** save, void* load);

#if defined(__x86_64__)
asm(R"(
.pushsection .text
.globl convoy_switch_stack
.type convoy_switch_stack, @function
.balign 16
convoy_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size convoy_switch_stack, .-convoy_switch_stack
.popsection
)");
#else  // aarch64
asm(R"(
.pushsection .text
.globl convoy_switch_stack
.type convoy_switch_stack, %function
.balign 16
convoy_switch_stack:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size convoy_switch_stack, .-convoy_switch_stack
.popsection
)");
#endif
#endif  // CONVOY_FIBER_UCONTEXT

namespace convoy::emulator {
namespace {

constexpr std::size_t kPage = 4096;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::size_t kStackBytes = 256 << 10;  // frames are larger there
#else
constexpr std::size_t kStackBytes = 64 << 10;
#endif

// Stacks at equal offsets in their pages would share a few sets of the first-level cache.
std::size_t colour(unsigned number) {
  return number % 16 * 256;
}

}  // namespace

Fiber::Fiber() {
#ifdef __SANITIZE_ADDRESS__
  pthread_attr_t attributes;
  pthread_getattr_np(pthread_self(), &attributes);
  void* lowest = nullptr;
  pthread_attr_getstack(&attributes, &lowest, &stack_bytes_);
  pthread_attr_destroy(&attributes);
  stack_ = static_cast<std::byte*>(lowest);
#endif
#ifdef __SANITIZE_THREAD__
  shadow_ = __tsan_get_current_fiber();
#endif
}

Fiber::Fiber(void (*entry)(), unsigned number)
    : entry_(entry), number_(number), stack_bytes_(kStackBytes) {
  void* mapping = ::mmap(nullptr, kPage + kStackBytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED || ::mprotect(mapping, kPage, PROT_NONE) != 0) {
    const int error = errno;
    if (mapping != MAP_FAILED) ::munmap(mapping, kPage + kStackBytes);
    CONVOY_FAIL(resource, "emulated GPU: no memory for stack {} of a block: {}", number,
                std::strerror(error));
  }
  mapping_ = static_cast<std::byte*>(mapping);
  stack_ = mapping_ + kPage;
  prepare();
}

Fiber::~Fiber() {
  if (mapping_ == nullptr) return;
#ifdef __SANITIZE_THREAD__
  __tsan_destroy_fiber(shadow_);
#endif
  ::munmap(mapping_, kPage + kStackBytes);
}

void Fiber::restart() {
#ifdef __SANITIZE_THREAD__
  __tsan_destroy_fiber(shadow_);
#endif
#ifdef __SANITIZE_ADDRESS__
  __asan_unpoison_memory_region(stack_, stack_bytes_);
  fake_stack_ = nullptr;
#endif
  prepare();
}

void Fiber::prepare() {
#ifdef __SANITIZE_THREAD__
  shadow_ = __tsan_create_fiber(0);
#endif
  std::byte* top = stack_ + stack_bytes_ - colour(number_);
#ifdef CONVOY_FIBER_UCONTEXT
  ::getcontext(&context_);
  context_.uc_stack.ss_sp = stack_;
  context_.uc_stack.ss_size = static_cast<std::size_t>(top - stack_);
  context_.uc_link = nullptr;
  ::makecontext(&context_, entry_, 0);
#elif defined(__x86_64__)
  // As convoy_switch_stack() leaves it: six registers, the place to go on, and above that what
  // looks like the return address of entry's caller.
  auto** words = reinterpret_cast<void**>(top) - 8;
  std::memset(words, 0, 8 * sizeof(void*));
  words[6] = reinterpret_cast<void*>(entry_);
  stack_pointer_ = words;
#else
  auto** words = reinterpret_cast<void**>(top) - 20;
  std::memset(words, 0, 20 * sizeof(void*));
  words[11] = reinterpret_cast<void*>(entry_);  // x30
  stack_pointer_ = words;
#endif
}

void Fiber::switch_to(Fiber& other) {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_start_switch_fiber(&fake_stack_, other.stack_, other.stack_bytes_);
#endif
#ifdef __SANITIZE_THREAD__
  __tsan_switch_to_fiber(other.shadow_, 0);
#endif
#ifdef CONVOY_FIBER_UCONTEXT
  ::swapcontext(&context_, &other.context_);
#else
  convoy_switch_stack(&stack_pointer_, other.stack_pointer_);
#endif
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(fake_stack_, nullptr, nullptr);
#endif
}

void Fiber::entered() {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
#endif
}

}  // namespace convoy::emulator
