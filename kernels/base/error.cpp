#include "kernels/base/error.h"

#include <new>
#include <system_error>

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

Error to_error(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const Error& error) {
    return error;
  } catch (const std::bad_alloc&) {
    return {ErrorKind::resource, "out of memory"};
  } catch (const std::system_error& error) {
    bool short_of = error.code() == std::errc::resource_unavailable_try_again ||
                    error.code() == std::errc::not_enough_memory ||
                    error.code() == std::errc::no_space_on_device;
    return {short_of ? ErrorKind::resource : ErrorKind::internal, error.what()};
  } catch (const std::exception& error) {
    return {ErrorKind::internal, error.what()};
  } catch (...) {
    return {ErrorKind::internal, "an unknown exception"};
  }
}

}  // namespace convoy
