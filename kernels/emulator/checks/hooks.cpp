// What code compiled with -fsanitize=thread calls for each load and store. ThreadSanitizer's own
// library is not linked. Code of the host calls these too: there no kernel thread runs.
#include <atomic>
#include <cstdint>

#include "kernels/emulator/checks/checker.h"

namespace convoy::emulator::checks {

namespace {

[[gnu::always_inline]] inline void hook(const void* address, std::size_t bytes, AccessKind kind,
                                        bool is_atomic, bool is_one, const void* code) {
  machine::Thread* const thread = machine::current_thread;
  if (thread == nullptr || thread->exchanges) return;
  checker().check(*thread, {address, std::uint32_t(bytes), kind, is_atomic, is_one, code});
}

template <class T>
std::atomic_ref<T> at(const volatile void* address) {
  return std::atomic_ref<T>(*static_cast<T*>(const_cast<void*>(address)));
}

}  // namespace

}  // namespace convoy::emulator::checks

using convoy::emulator::checks::AccessKind;
using convoy::emulator::checks::at;
using convoy::emulator::checks::hook;

// NOLINTBEGIN(bugprone-reserved-identifier,bugprone-macro-parentheses): the compiler's names
#define CODE __builtin_return_address(0)
#define PLAIN(bytes)                                       \
  void __tsan_read##bytes(const void* p) {                 \
    hook(p, bytes, AccessKind::read, false, true, CODE);   \
  }                                                        \
  void __tsan_write##bytes(const void* p) {                \
    hook(p, bytes, AccessKind::write, false, true, CODE);  \
  }                                                        \
  void __tsan_unaligned_read##bytes(const void* p) {       \
    hook(p, bytes, AccessKind::read, false, false, CODE);  \
  }                                                        \
  void __tsan_unaligned_write##bytes(const void* p) {      \
    hook(p, bytes, AccessKind::write, false, false, CODE); \
  }

#define FETCH(bits, name, operation)                                                        \
  std::uint##bits##_t __tsan_atomic##bits##_##name(volatile void* p, std::uint##bits##_t v, \
                                                   int /*order*/) {                         \
    hook(const_cast<const void*>(p), bits / 8, AccessKind::atomic, true, true, CODE);       \
    return at<std::uint##bits##_t>(p).operation(v);                                         \
  }

#define ATOMIC(bits)                                                                         \
  std::uint##bits##_t __tsan_atomic##bits##_load(const volatile void* p, int /*order*/) {    \
    hook(const_cast<const void*>(p), bits / 8, AccessKind::read, true, true, CODE);          \
    return at<std::uint##bits##_t>(p).load();                                                \
  }                                                                                          \
  void __tsan_atomic##bits##_store(volatile void* p, std::uint##bits##_t v, int /*order*/) { \
    hook(const_cast<const void*>(p), bits / 8, AccessKind::write, true, true, CODE);         \
    at<std::uint##bits##_t>(p).store(v);                                                     \
  }                                                                                          \
  FETCH(bits, exchange, exchange)                                                            \
  FETCH(bits, fetch_add, fetch_add)                                                          \
  FETCH(bits, fetch_sub, fetch_sub)                                                          \
  FETCH(bits, fetch_and, fetch_and)                                                          \
  FETCH(bits, fetch_or, fetch_or)                                                            \
  FETCH(bits, fetch_xor, fetch_xor)                                                          \
  bool __tsan_atomic##bits##_compare_exchange_strong(                                        \
      volatile void* p, std::uint##bits##_t* expected, std::uint##bits##_t v, int, int) {    \
    hook(const_cast<const void*>(p), bits / 8, AccessKind::atomic, true, true, CODE);        \
    return at<std::uint##bits##_t>(p).compare_exchange_strong(*expected, v);                 \
  }                                                                                          \
  bool __tsan_atomic##bits##_compare_exchange_weak(                                          \
      volatile void* p, std::uint##bits##_t* expected, std::uint##bits##_t v, int, int) {    \
    hook(const_cast<const void*>(p), bits / 8, AccessKind::atomic, true, true, CODE);        \
    return at<std::uint##bits##_t>(p).compare_exchange_strong(*expected, v);                 \
  }

extern "C" {

PLAIN(1)
PLAIN(2)
PLAIN(4)
PLAIN(8)
PLAIN(16)

void __tsan_read_range(const void* p, unsigned long bytes) {
  hook(p, bytes, AccessKind::read, false, false, CODE);
}
void __tsan_write_range(const void* p, unsigned long bytes) {
  hook(p, bytes, AccessKind::write, false, false, CODE);
}

ATOMIC(8)
ATOMIC(16)
ATOMIC(32)
ATOMIC(64)

void __tsan_atomic_thread_fence(int /*order*/) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
}
void __tsan_atomic_signal_fence(int /*order*/) {}

// Called before main() by each instrumented unit: the checks must see the first allocation.
void __tsan_init() {
  convoy::emulator::checks::checker();
}
void __tsan_func_entry(const void* /*caller*/) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void* /*place*/, const void* /*value*/) {}
void __tsan_vptr_read(void* /*place*/) {}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier,bugprone-macro-parentheses)
