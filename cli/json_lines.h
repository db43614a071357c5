// JSON for stdout and the metrics file: one object a line. Numbers keep all their digits (the
// shortest text that reads back the same), NaN and infinities are null, and a byte that is no UTF-8
// is written as the four characters \xNN.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace convoy::cli {

class JsonObject;

/// Shortest text that reads back as the same number; "null" for NaN and infinities.
std::string to_json(double value);
std::string to_json(float value);

/// `true`, `false`, or the digits.
template <std::integral T>
std::string to_json(T value) {
  if constexpr (std::same_as<T, bool>) return value ? "true" : "false";
  return std::to_string(value);
}

/// `text` in quotes, escaped; bytes that are no UTF-8 as engine/io/text.h writes them.
std::string to_json(std::string_view text);

std::string to_json(const JsonObject& value);

/// `null` where there is no value.
template <class T>
std::string to_json(const std::optional<T>& value) {
  return value ? to_json(*value) : "null";
}

/// `[1,2]`.
template <class T>
std::string to_json(const std::vector<T>& values) {
  std::string text;
  for (const T& value : values) {
    if (!text.empty()) text += ',';
    text += to_json(value);
  }
  return "[" + text + "]";
}

/// `"key":value`; the value is any that to_json() takes.
struct JsonMember {
  template <class T>
  JsonMember(std::string_view its_key, const T& value) : key(its_key), json(to_json(value)) {}

  std::string_view key;
  std::string json;
};

/// `{"key":value,...}` in the order of the list and of the calls.
class JsonObject {
 public:
  JsonObject() = default;
  JsonObject(std::initializer_list<JsonMember> members);

  template <class T>
  JsonObject& add(std::string_view key, const T& value) {
    return add_raw(key, to_json(value));
  }

  /// `json` is a JSON text already.
  JsonObject& add_raw(std::string_view key, std::string_view json);

  /// The object, without a line break.
  std::string text() const { return "{" + members_ + "}"; }

 private:
  std::string members_;
};

}  // namespace convoy::cli
