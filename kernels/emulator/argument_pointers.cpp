#include "kernels/emulator/argument_pointers.h"

#include <fmt/format.h>

#include "kernels/emulator/devices.h"

namespace convoy::emulator {
namespace {

std::string problem_of(int device, const ArgumentPointer& argument) {
  const int owner = owner_of(argument.pointer);
  if (owner == kNoOwner) return "a pointer to memory of the host, which kernels cannot use";
  const std::optional<Allocation> found = lookup(argument.pointer);
  // A struct may hold the address of an element that padding puts outside of the tensor.
  if (!argument.embedded && (!found || found->freed)) {
    return fmt::format("a pointer to no memory: {}", describe_pointer(argument.pointer));
  }
  if (owner == kPinnedOwner || owner == device || emulated_device(device).peer_access(owner)) {
    return {};
  }
  return fmt::format("a pointer to {}, whose memory {} has no access to", owner_name(owner),
                     owner_name(device));
}

}  // namespace

std::string pointer_problem(int device, const std::vector<ArgumentPointer>& pointers) {
  for (const ArgumentPointer& argument : pointers) {
    if (std::string problem = problem_of(device, argument); !problem.empty()) return problem;
  }
  return {};
}

}  // namespace convoy::emulator
