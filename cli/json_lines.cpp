#include "cli/json_lines.h"

#include <charconv>
#include <cmath>

#include "engine/io/text.h"

namespace convoy::cli {
namespace {

template <class T>
std::string shortest(T value) {
  if (!std::isfinite(value)) return "null";
  char text[40];
  auto end = std::to_chars(text, text + sizeof text, value).ptr;
  return {text, end};
}

}  // namespace

std::string to_json(double value) {
  return shortest(value);
}
std::string to_json(float value) {
  return shortest(value);
}

std::string to_json(std::string_view text) {
  return json_string(utf8_of_bytes(text));
}

std::string to_json(const JsonObject& value) {
  return value.text();
}

JsonObject::JsonObject(std::initializer_list<JsonMember> members) {
  for (const JsonMember& member : members) add_raw(member.key, member.json);
}

JsonObject& JsonObject::add_raw(std::string_view key, std::string_view json) {
  if (!members_.empty()) members_ += ',';
  members_ += to_json(key);
  members_ += ':';
  members_ += json;
  return *this;
}

}  // namespace convoy::cli
