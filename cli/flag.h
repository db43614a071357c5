// One line of the table of flags, and what binds it to a field of Options.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "cli/json_lines.h"
#include "cli/options.h"
#include "cli/value.h"

namespace convoy::cli {

enum class Group { model, data, optimization, layout, run, program };

/// What a config file may write; `choice` is a text, `optional_text` a text or true.
enum class Kind { toggle, integer, number, text, text_or_integer, optional_text, list };

/// How a value enters Options and how it is told again (as JSON).
struct Binding {
  Kind kind = Kind::text;
  std::function<void(Options&, const Value&)> set;
  std::function<std::string(const Options&)> json;
  std::function<void(Options&)> reset;  ///< back to the default
};

/// How often a flag is wanted: -h lists the common ones, --help-all all.
enum class Use { common, rare };

struct Flag {
  std::string name;  ///< without the dashes; the key in config files and the run line
  Group group = Group::program;
  std::string value;  ///< as in the help: "N", "sgd|lars|adamw", empty for a toggle
  std::string help;
  Use use = Use::rare;
  Binding binding;
  std::string open;  ///< the default, where leaving it open has a meaning of its own
};

/// "model", "data", ...
const char* name(Group group);

/// CONVOY_IMAGE_SIZE of image-size.
std::string variable(const Flag& flag);

// Bindings to a field of Settings or Options. An optional field that is empty is null in JSON.

template <class T, class Owner>
T& field(Options& options, T Owner::*member) {
  if constexpr (std::is_same_v<Owner, Settings>) {
    return options.settings.*member;
  } else {
    return options.*member;
  }
}

template <class T, class Owner>
const T& field(const Options& options, T Owner::*member) {
  return field(const_cast<Options&>(options), member);
}

/// A setting as JSON: a text left open is null.
template <class T>
std::string setting_json(const T& value) {
  return to_json(value);
}
inline std::string setting_json(const std::string& value) {
  return value.empty() ? "null" : to_json(value);
}

/// A binding whose value comes from `read(value)`.
template <class T, class Owner, class Read>
Binding bind(Kind kind, T Owner::*member, Read read) {
  return {kind,
          [member, read = std::move(read)](Options& options, const Value& value) {
            field(options, member) = read(value);
          },
          [member](const Options& options) { return setting_json(field(options, member)); },
          [member](Options& options) { field(options, member) = field(Options(), member); }};
}

/// T of an optional<T>, else T itself.
template <class T>
struct Held {
  using type = T;
};
template <class T>
struct Held<std::optional<T>> {
  using type = T;
};

template <class T, class Owner>
Binding integer(T Owner::*member, IntegerRange range) {
  return bind(Kind::integer, member, [range](const Value& value) {
    return static_cast<typename Held<T>::type>(read_integer(value, range));
  });
}

template <class T, class Owner>
Binding number(T Owner::*member, NumberRange range) {
  return bind(Kind::number, member,
              [range](const Value& value) { return read_number(value, range); });
}

template <class Owner>
Binding text(std::string Owner::*member) {
  return bind(Kind::text, member, [](const Value& value) { return value.text; });
}

template <class T, class Owner>
Binding choice(T Owner::*member, std::vector<std::string> choices) {
  return bind(Kind::text, member, [choices = std::move(choices)](const Value& value) {
    return read_choice(value, choices);
  });
}

template <class Owner>
Binding toggle(bool Owner::*member) {
  return bind(Kind::toggle, member, read_toggle);
}

}  // namespace convoy::cli
