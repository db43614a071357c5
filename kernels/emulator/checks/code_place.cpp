#include "kernels/emulator/checks/code_place.h"

#include <dlfcn.h>
#include <fmt/core.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <cstdio>
#include <memory>

namespace convoy::emulator::checks {

namespace {

const char* program_base() {
  static const char* const base = [] {
    Dl_info info = {};
    const auto* here = reinterpret_cast<const void*>(&program_base);
    return dladdr(here, &info) != 0 ? static_cast<const char*>(info.dli_fbase) : nullptr;
  }();
  return base;
}

std::string program_file() {
  std::array<char, PATH_MAX> path = {};
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size() - 1);
  return {path.data(), static_cast<std::size_t>(length > 0 ? length : 0)};
}

std::string output_of(const std::string& command) {
  std::string text;
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  if (!pipe) return text;
  std::array<char, 4096> part;
  while (std::size_t got = fread(part.data(), 1, part.size(), pipe.get())) {
    text.append(part.data(), got);
  }
  return text;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::size_t start = 0;
  for (std::size_t end; (end = text.find('\n', start)) != text.npos; start = end + 1) {
    lines.push_back(text.substr(start, end - start));
  }
  return lines;
}

// "/a/b/kernel.cu:12 (discriminator 3)" as "kernel.cu:12"; empty for "??:0".
std::string short_place(const std::string& line) {
  const std::string place = line.substr(0, line.find(" ("));
  if (place.starts_with("??") || place.ends_with(":?") || place.ends_with(":0")) return {};
  return place.substr(place.rfind('/') + 1);
}

std::string file_of(const std::string& place) {
  return place.substr(0, place.find(':'));
}

// The innermost place of those that addr2line gives for an address, and the first one in another
// file.
std::string joined(const std::vector<std::string>& places) {
  if (places.empty()) return {};
  for (const std::string& place : places) {
    if (file_of(place) != file_of(places.front())) return places.front() + " in " + place;
  }
  return places.front();
}

}  // namespace

std::uint32_t code_offset(const void* return_address) {
  const std::ptrdiff_t offset = static_cast<const char*>(return_address) - program_base();
  return offset > 0 && offset < (std::ptrdiff_t{1} << 31) ? static_cast<std::uint32_t>(offset) : 0;
}

std::vector<std::string> describe_code(const std::vector<std::uint32_t>& offsets) {
  // The address of a call is one before that to which it returns.
  std::string command = "addr2line -a -i -e '" + program_file() + "'";
  for (std::uint32_t offset : offsets) command += fmt::format(" 0x{:x}", offset - 1);
  std::vector<std::vector<std::string>> places;
  for (const std::string& line : lines_of(output_of(command + " 2>/dev/null"))) {
    if (line.starts_with("0x")) {
      places.emplace_back();
    } else if (std::string place = short_place(line); !place.empty() && !places.empty()) {
      places.back().push_back(std::move(place));
    }
  }
  places.resize(offsets.size());
  std::vector<std::string> result;
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    std::string text = joined(places[i]);
    result.push_back(text.empty() ? fmt::format("program+0x{:x}", offsets[i]) : std::move(text));
  }
  return result;
}

}  // namespace convoy::emulator::checks
