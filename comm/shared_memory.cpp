#include "comm/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <random>
#include <utility>

#include "kernels/base/error.h"

namespace convoy {
namespace {

constexpr std::size_t kTailBytes = 64;  // a cache line of its own

std::size_t with_tail(std::size_t bytes) {
  return (bytes + kTailBytes - 1) / kTailBytes * kTailBytes + kTailBytes;
}

std::uint64_t random_token() {
  std::random_device random;
  return (std::uint64_t{random()} << 32 | random()) | 1;
}

}  // namespace

SharedMemory::SharedMemory(int descriptor, std::size_t bytes)
    : bytes_(with_tail(bytes)), descriptor_(descriptor) {
  data_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
  if (data_ == MAP_FAILED) data_ = nullptr;
}

SharedMemory::~SharedMemory() {
  if (data_ && made_here_) tail().closed.store(1, std::memory_order_release);
  if (data_) munmap(data_, bytes_);
  close_descriptor();
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      bytes_(other.bytes_),
      made_here_(other.made_here_),
      descriptor_(std::exchange(other.descriptor_, -1)),
      address_(other.address_) {}

std::size_t SharedMemory::bytes() const {
  return bytes_ - kTailBytes;
}

SharedMemory::Tail& SharedMemory::tail() const {
  static_assert(sizeof(Tail) <= kTailBytes);
  std::byte* end = static_cast<std::byte*>(data_) + bytes_;
  return *reinterpret_cast<Tail*>(end - kTailBytes);  // zeros are a Tail
}

void SharedMemory::close_descriptor() {
  if (descriptor_ >= 0) close(std::exchange(descriptor_, -1));
}

void SharedMemory::populate() const {
#ifdef MADV_POPULATE_WRITE
  madvise(data_, bytes_, MADV_POPULATE_WRITE);  // a kernel before 5.14 refuses, and nothing is lost
#endif
}

SharedMemory SharedMemory::make(std::size_t bytes) {
  const int descriptor = memfd_create("convoy", MFD_CLOEXEC);
  if (descriptor < 0) CONVOY_FAIL(resource, "shared memory: {}", std::strerror(errno));
  if (ftruncate(descriptor, static_cast<off_t>(with_tail(bytes))) != 0) {
    const int cause = errno;
    close(descriptor);
    CONVOY_FAIL(resource, "shared memory of {} bytes: {}", bytes, std::strerror(cause));
  }
  SharedMemory memory(descriptor, bytes);
  if (!memory.data_)
    CONVOY_FAIL(resource, "shared memory of {} bytes: {}", bytes, std::strerror(errno));
  memory.address_ = {getpid(), descriptor, random_token()};
  memory.tail().token = memory.address_.token;
  memory.made_here_ = true;
  return memory;
}

std::optional<SharedMemory> SharedMemory::open(const SharedMemoryAddress& address,
                                               std::size_t bytes) {
  const std::string path = fmt::format("/proc/{}/fd/{}", address.pid, address.descriptor);
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return std::nullopt;
  if (lseek(descriptor, 0, SEEK_END) != static_cast<off_t>(with_tail(bytes))) {
    close(descriptor);
    return std::nullopt;
  }
  SharedMemory memory(descriptor, bytes);
  memory.close_descriptor();
  if (!memory.data_ || memory.tail().token != address.token) return std::nullopt;
  memory.tail().opened.store(1, std::memory_order_release);
  memory.address_ = address;
  return memory;
}

}  // namespace convoy
