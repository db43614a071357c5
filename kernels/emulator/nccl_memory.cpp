#include "kernels/emulator/nccl_memory.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <mutex>
#include <new>
#include <random>
#include <string>

#include "kernels/base/error.h"

namespace convoy::emulator::nccl {
namespace {

constexpr std::uint64_t kMagic = 0x6c63636e2d756d65;  // "emu-nccl"
constexpr std::size_t kHeaderBytes = (sizeof(Header) + 4095) / 4096 * 4096;
constexpr long kLongestSleep = 2'000'000;  // ns

static_assert(std::atomic<std::uint32_t>::is_always_lock_free);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

/// Files that this process made and that ranks may still have to open.
class MadeFiles {
 public:
  static MadeFiles& instance() {
    static auto* const files = new MadeFiles;  // threads may outlive static objects
    return *files;
  }
  void keep(std::uint64_t token, int descriptor) {
    const std::lock_guard lock(mutex_);
    open_[token] = descriptor;
  }
  void close(std::uint64_t token) {
    const std::lock_guard lock(mutex_);
    const auto found = open_.find(token);
    if (found == open_.end()) return;
    ::close(found->second);
    open_.erase(found);
  }

 private:
  std::mutex mutex_;
  std::map<std::uint64_t, int> open_;
};

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::uint64_t random_token() {
  std::random_device random;
  return std::uint64_t{random()} << 32 | random();
}

Header* map_header(int descriptor) {
  void* data = mmap(nullptr, kHeaderBytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  return data == MAP_FAILED ? nullptr : static_cast<Header*>(data);
}

struct flock lock_of(int rank, int type) {
  struct flock lock = {};
  lock.l_type = static_cast<short>(type);
  lock.l_whence = SEEK_SET;
  lock.l_start = rank;
  lock.l_len = 1;
  return lock;
}

long futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value,
           const timespec* limit) {
  return syscall(SYS_futex, &word, operation, value, limit, nullptr, 0);
}

}  // namespace

Address make_memory() {
  const int descriptor = memfd_create("emulated-nccl", MFD_CLOEXEC);
  if (descriptor < 0 || ftruncate(descriptor, kHeaderBytes) != 0) {
    const int cause = errno;
    if (descriptor >= 0) close(descriptor);
    CONVOY_FAIL(resource, "emulated NCCL: shared memory: {}", std::strerror(cause));
  }
  Header* header = map_header(descriptor);
  if (!header) {
    close(descriptor);
    CONVOY_FAIL(resource, "emulated NCCL: shared memory cannot be mapped");
  }
  new (header) Header;
  header->token = random_token();
  header->as_hardware = variable("CONVOY_EMULATOR_NCCL") == "as-hardware";
  header->seed = std::atoi(variable("CONVOY_EMULATOR_NCCL_SEED").c_str());
  const Address address{kMagic, getpid(), descriptor, header->token};
  munmap(header, kHeaderBytes);
  MadeFiles::instance().keep(address.token, descriptor);
  return address;
}

void close_made(const Address& address) {
  if (address.process == getpid()) MadeFiles::instance().close(address.token);
}

std::unique_ptr<Memory> Memory::open(const Address& address) {
  if (address.magic != kMagic) return nullptr;
  const std::string path = fmt::format("/proc/{}/fd/{}", address.process, address.descriptor);
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return nullptr;
  Header* header = lseek(descriptor, 0, SEEK_END) >= static_cast<off_t>(kHeaderBytes)
                       ? map_header(descriptor)
                       : nullptr;
  if (!header) {
    close(descriptor);
    return nullptr;
  }
  std::unique_ptr<Memory> memory(new Memory(descriptor, header));
  return header->token == address.token ? std::move(memory) : nullptr;
}

Memory::~Memory() {
  if (channels_) munmap(channels_, channel_bytes_);
  munmap(header_, kHeaderBytes);
  close(descriptor_);
}

Channel& Memory::channel(int from, int to) const {
  return reinterpret_cast<Channel*>(channels_)[from * ranks_ + to];  // zeros are a Channel
}

// The file grows without taking memory: only channels that are used do.
bool Memory::add_channels(int ranks) {
  ranks_ = ranks;
  channel_bytes_ = sizeof(Channel) * static_cast<std::size_t>(ranks * ranks);
  if (ftruncate(descriptor_, static_cast<off_t>(kHeaderBytes + channel_bytes_)) != 0) return false;
  void* data = mmap(nullptr, channel_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_,
                    static_cast<off_t>(kHeaderBytes));
  if (data == MAP_FAILED) return false;
  channels_ = static_cast<std::byte*>(data);
  return true;
}

bool Memory::take(int rank) {
  struct flock lock = lock_of(rank, F_WRLCK);
  return fcntl(descriptor_, F_OFD_SETLK, &lock) == 0;
}

bool Memory::is_dead(int rank) const {
  struct flock lock = lock_of(rank, F_WRLCK);
  if (fcntl(descriptor_, F_OFD_GETLK, &lock) != 0) return false;
  return lock.l_type == F_UNLCK;
}

void ring(RankRecord& record) {
  record.bell.fetch_add(1);
  if (record.sleeping.load() != 0) futex(record.bell, FUTEX_WAKE, INT_MAX, nullptr);
}

void wait_for_bell(RankRecord& record, std::uint32_t seen) {
  const timespec limit{0, kLongestSleep};
  record.sleeping.fetch_add(1);
  futex(record.bell, FUTEX_WAIT, seen, &limit);
  record.sleeping.fetch_sub(1);
}

}  // namespace convoy::emulator::nccl
