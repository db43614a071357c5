#include "kernels/base/error.h"

namespace convoy {

const char* name(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::internal:
      return "internal";
    case ErrorKind::usage:
      return "usage";
    case ErrorKind::data:
      return "data";
    case ErrorKind::checkpoint:
      return "checkpoint";
    case ErrorKind::communication:
      return "communication";
    case ErrorKind::numerics:
      return "numerics";
    case ErrorKind::resource:
      return "resource";
  }
  return "internal";
}

Error::Error(ErrorKind kind, std::string text, std::string place, std::optional<int> rank)
    : std::runtime_error(text),
      kind_(kind),
      text_(std::move(text)),
      place_(std::move(place)),
      rank_(rank) {}

std::string describe(const Error& error) {
  std::string rank = error.rank() ? fmt::format("[rank {}] ", *error.rank()) : std::string();
  return fmt::format("{}{}: {}", rank, name(error.kind()), error.text());
}

}  // namespace convoy
