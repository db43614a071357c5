// Names of kernels: looked up by address in the symbol tables of the running program, so that
// kernels need no registration, functions in unnamed namespaces included.
#include <cxxabi.h>
#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "kernels/emulator/machine.h"

namespace convoy::emulator::machine {
namespace {

// The program or library that holds an address, and where it is loaded.
struct Module {
  std::uintptr_t address = 0;
  std::uintptr_t base = 0;
  std::string path;
};

int match_module(dl_phdr_info* info, std::size_t, void* data) {
  auto& module = *static_cast<Module*>(data);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[i];
    const std::uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
    if (segment.p_type != PT_LOAD || module.address < begin ||
        module.address >= begin + segment.p_memsz) {
      continue;
    }
    module.base = info->dlpi_addr;
    module.path = *info->dlpi_name == '\0' ? "/proc/self/exe" : info->dlpi_name;
    return 1;
  }
  return 0;
}

// A file in memory, read only.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat about = {};
    if (file >= 0 && ::fstat(file, &about) == 0) {
      bytes_ = static_cast<std::size_t>(about.st_size);
      data_ = ::mmap(nullptr, bytes_, PROT_READ, MAP_PRIVATE, file, 0);
    }
    if (file >= 0) ::close(file);
  }
  ~MappedFile() {
    if (data_ != MAP_FAILED) ::munmap(data_, bytes_);
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  template <class T>
  const T* at(std::size_t offset, std::size_t count = 1) const {
    if (data_ == MAP_FAILED || offset + count * sizeof(T) > bytes_) return nullptr;
    return reinterpret_cast<const T*>(static_cast<const char*>(data_) + offset);
  }

 private:
  void* data_ = MAP_FAILED;
  std::size_t bytes_ = 0;
};

// The mangled name of the function at `address` (relative to the base); empty if unknown.
std::string find_symbol(const MappedFile& file, std::uintptr_t address) {
  const auto* header = file.at<ElfW(Ehdr)>(0);
  if (header == nullptr) return {};
  const auto* sections = file.at<ElfW(Shdr)>(header->e_shoff, header->e_shnum);
  if (sections == nullptr) return {};
  for (int i = 0; i < header->e_shnum; ++i) {
    if (sections[i].sh_type != SHT_SYMTAB || sections[i].sh_link >= header->e_shnum) continue;
    const std::size_t count = sections[i].sh_size / sizeof(ElfW(Sym));
    const auto* symbols = file.at<ElfW(Sym)>(sections[i].sh_offset, count);
    if (symbols == nullptr) return {};
    for (std::size_t s = 0; s < count; ++s) {
      if (symbols[s].st_value != address || (symbols[s].st_info & 0xF) != STT_FUNC) continue;
      const auto* name =
          file.at<char>(sections[sections[i].sh_link].sh_offset + symbols[s].st_name);
      return name == nullptr ? "" : name;
    }
  }
  return {};
}

// "void a::(anonymous namespace)::f<int>(int*)" as "a::f<int>".
std::string shorten(std::string name) {
  constexpr std::string_view unnamed = "(anonymous namespace)::";
  for (std::size_t at; (at = name.find(unnamed)) != std::string::npos;) {
    name.erase(at, unnamed.size());
  }
  int depth = 0;
  std::size_t begin = 0, end = name.size();
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '<') ++depth;
    if (name[i] == '>') --depth;
    if (depth == 0 && name[i] == ' ' && begin == 0) begin = i + 1;
    if (depth == 0 && name[i] == '(') {
      end = i;
      break;
    }
  }
  return name.substr(begin, end - begin);
}

std::string look_up(const void* function) {
  Module module;
  module.address = reinterpret_cast<std::uintptr_t>(function);
  dl_iterate_phdr(match_module, &module);
  if (module.path.empty()) return fmt::format("kernel at {}", function);
  std::string mangled = find_symbol(MappedFile(module.path), module.address - module.base);
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> plain(
      abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status), &std::free);
  if (plain != nullptr) return shorten(plain.get());
  if (!mangled.empty()) return mangled;
  return fmt::format("kernel at {}+{:#x}", module.path, module.address - module.base);
}

}  // namespace

const std::string& kernel_name(const void* address) {
  static std::mutex mutex;
  static auto& names = *new std::unordered_map<const void*, std::string>;
  const std::lock_guard lock(mutex);
  const auto [entry, fresh] = names.try_emplace(address);
  if (fresh) entry->second = look_up(address);
  return entry->second;
}

}  // namespace convoy::emulator::machine
