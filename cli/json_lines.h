// JSON for stdout and the metrics file: one object a line. Numbers keep all their digits (the
// shortest text that reads back the same), NaN and infinities are null, and a byte that is no UTF-8
// is written as the four characters \xNN.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace convoy::cli {

/// Shortest text that reads back as the same number; "null" for NaN and infinities.
std::string json_number(double value);
std::string json_number(float value);

/// `text` in quotes, escaped; bytes that are no UTF-8 as engine/io/text.h writes them.
std::string json_string(std::string_view text);

/// `["a","b"]`.
std::string json_array(const std::vector<std::string>& values);

/// Builds `{"key":value,...}` in the order of the calls.
class JsonObject {
 public:
  JsonObject& add(std::string_view key, std::string_view value);
  JsonObject& add(std::string_view key, const char* value) {
    return add(key, std::string_view(value));
  }
  JsonObject& add(std::string_view key, double value) { return add_raw(key, json_number(value)); }
  JsonObject& add(std::string_view key, float value) { return add_raw(key, json_number(value)); }
  template <std::integral T>
  JsonObject& add(std::string_view key, T value) {
    if constexpr (std::same_as<T, bool>) return add_raw(key, value ? "true" : "false");
    return add_raw(key, std::to_string(value));
  }
  JsonObject& add(std::string_view key, const std::vector<std::string>& values);
  JsonObject& add(std::string_view key, const std::vector<float>& values);
  JsonObject& add(std::string_view key, const std::vector<double>& values);
  JsonObject& add(std::string_view key, const std::vector<std::int64_t>& values);
  JsonObject& add(std::string_view key, const JsonObject& value) {
    return add_raw(key, value.text());
  }
  JsonObject& add(std::string_view key, const std::vector<JsonObject>& values);
  JsonObject& add_null(std::string_view key) { return add_raw(key, "null"); }

  /// `json` is a JSON text already.
  JsonObject& add_raw(std::string_view key, std::string_view json);

  /// The object, without a line break.
  std::string text() const { return "{" + members_ + "}"; }

 private:
  std::string members_;
};

}  // namespace convoy::cli
