#include "comm/io_count.h"

#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <string_view>

#include "comm/sockets.h"

namespace convoy {
namespace {

/// The number after `name` in lines "name: number".
std::uint64_t number_after(std::string_view text, std::string_view name) {
  const std::size_t start = text.find(name);
  std::uint64_t value = 0;
  if (start == std::string_view::npos) return value;
  const std::string_view rest = text.substr(start + name.size());
  std::from_chars(rest.data(), rest.data() + rest.size(), value);
  return value;
}

}  // namespace

std::uint64_t IoCount::bytes() {
  const Descriptor file(::open("/proc/self/io", O_RDONLY | O_CLOEXEC));
  char buffer[1024];
  const ssize_t size = file ? ::read(file.get(), buffer, sizeof buffer) : -1;
  if (size <= 0) return 0;
  const std::string_view text(buffer, static_cast<std::size_t>(size));
  const std::uint64_t all = number_after(text, "rchar: ") + number_after(text, "wchar: ");
  const std::uint64_t others = all - own_;
  own_ += static_cast<std::uint64_t>(size);
  return others;
}

}  // namespace convoy
