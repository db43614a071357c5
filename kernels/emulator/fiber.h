// Stacks that take turns on one host thread. A switch costs tens of nanoseconds: it saves what the
// calling convention keeps and swaps the stack pointer.
#pragma once

#include <cstddef>

// Where the switch is not written by hand, or for tests of it, the C library's; some 50 times
// slower.
#if !defined(__x86_64__) && !defined(__aarch64__) && !defined(CONVOY_FIBER_UCONTEXT)
#define CONVOY_FIBER_UCONTEXT 1
#endif
#ifdef CONVOY_FIBER_UCONTEXT
#include <ucontext.h>
#endif

namespace convoy::emulator {

/// A place where execution may go on: a stack of its own or the host thread's.
class Fiber {
 public:
  /// The host thread itself, to switch away from and back to.
  Fiber();
  /// A fresh stack that runs entry() at the first switch; entry never returns. `number` spreads
  /// the stacks over the sets of the caches. `resource` if there is no memory.
  Fiber(void (*entry)(), unsigned number);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Goes on in `other` until something switches back here. Both belong to this host thread.
  void switch_to(Fiber& other);
  /// To be called first in entry().
  static void entered();
  /// Forgets what runs on the stack: the next switch starts entry() anew.
  void restart();

 private:
  void prepare();

  void* stack_pointer_ = nullptr;
  void (*entry_)() = nullptr;
  unsigned number_ = 0;
  std::byte* mapping_ = nullptr;
  std::byte* stack_ = nullptr;  // lowest address
  std::size_t stack_bytes_ = 0;
  void* fake_stack_ = nullptr;  // AddressSanitizer's
  void* shadow_ = nullptr;      // ThreadSanitizer's
#ifdef CONVOY_FIBER_UCONTEXT
  ucontext_t context_;
#endif
};

}  // namespace convoy::emulator
