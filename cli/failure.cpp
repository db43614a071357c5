#include "cli/failure.h"

#include <new>
#include <system_error>

#include "kernels/base/error.h"

namespace convoy::cli {
namespace {

/// Control bytes (of file names, of texts of libraries) would break the line or the terminal.
std::string one_line(const std::string& text) {
  std::string out;
  for (unsigned char c : text) {
    if (c == '\n') {
      out += "; ";
    } else if (c < 0x20 || c == 0x7F) {
      out += fmt::format("\\x{:02X}", c);
    } else {
      out += static_cast<char>(c);
    }
  }
  return out;
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

}  // namespace

Failure describe_failure(const std::exception_ptr& exception) {
  Error error = to_error(exception);
  std::string text = describe(error);
  bool ours = error.kind() == ErrorKind::internal && !error.place().empty();
  if (ours) text += " (" + error.place() + ")";
  return {"convoy: error: " + one_line(text), static_cast<int>(error.kind())};
}

}  // namespace convoy::cli
