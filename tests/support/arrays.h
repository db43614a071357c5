// NamedArrays from plain values and back.
#pragma once

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "engine/io/named_array.h"

namespace convoy::testing {

template <class T>
NamedArray make_array(std::string name, std::vector<std::int64_t> shape,
                      const std::vector<T>& values, DType dtype = dtype_of<T>) {
  NamedArray array{std::move(name), dtype, std::move(shape), {}};
  array.bytes.resize(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
  return array;
}

template <class T>
std::vector<T> values_of(const NamedArray& array) {
  std::vector<T> values(array.bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), array.bytes.data(), array.bytes.size());
  return values;
}

}  // namespace convoy::testing
