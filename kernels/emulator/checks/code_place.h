// Places in the program's code: small numbers while a kernel runs, file and line in reports.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace convoy::emulator::checks {

/// Offset of a return address in the program; 0 for code outside of it.
std::uint32_t code_offset(const void* return_address);

/// File and line of each offset, "kernel.cu:12", with the functions that the compiler put there:
/// "vector.h:85 in kernel.cu:12". Asks addr2line, once for all; "program+0x1234" without it.
std::vector<std::string> describe_code(const std::vector<std::uint32_t>& offsets);

}  // namespace convoy::emulator::checks
