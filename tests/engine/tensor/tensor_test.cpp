// Tensors: values in and out, what shares memory and what does not, devices and element types.
#include "engine/tensor/tensor.h"

#include <thread>

#include "engine/tensor/storage.h"
#include "kernels/base/context.h"
#include "tests/support/catch.h"
#include "tests/support/expect_error.h"

namespace convoy::testing {
namespace {

using Floats = std::vector<float>;
const char* const kDevices[] = {"ref:0", "cpu:0"};

}  // namespace

TEST_CASE("tensor: values go in and come out") {
  for (const char* device : kDevices) {
    const Tensor x = Tensor::from(Floats{1, 2, 3, 4, 5, 6}, {2, 3}, device);
    CHECK(x.to_vector<float>() == Floats{1, 2, 3, 4, 5, 6});
    CHECK(x.to_vector<double>() == std::vector<double>{1, 2, 3, 4, 5, 6});
    CHECK(x.to_vector<std::int64_t>() == std::vector<std::int64_t>{1, 2, 3, 4, 5, 6});
    CHECK(x.to_bytes().size() == 24);
    CHECK(x.shape() == Shape{2, 3});
    CHECK(x.size(-1) == 3);
    CHECK(x.numel() == 6);
    CHECK(x.stored_count() == 6);
    CHECK(x.device() == Device(device));
    CHECK(describe(x) == std::string("f32 (2, 3) on ") + device);
    CHECK(Tensor::from(Floats{7}, {}, device).item() == 7);
    CHECK(Tensor::from(Floats{}, {0, 4}, device).to_vector<float>().empty());
  }
  CHECK(describe(Tensor()) == "undefined tensor");
  CHECK(Tensor::zeros({1}).device() == Device("cpu:0"));
}

TEST_CASE("tensor: integers and bytes") {
  for (const char* device : kDevices) {
    const std::vector<std::int64_t> large{1, -2, std::int64_t{1} << 40};
    CHECK(Tensor::from(large, {3}, device).to_vector<std::int64_t>() == large);
    const std::vector<std::uint8_t> bytes{0, 255};
    const Tensor small = Tensor::from(bytes, {2}, device);
    CHECK(small.to_vector<std::uint8_t>() == bytes);
    CHECK(small.to(DType::f32).to_vector<float>() == Floats{0, 255});
    CHECK(Tensor::full({2}, 5, {DType::i64, device}).to_vector<std::int64_t>() ==
          std::vector<std::int64_t>{5, 5});
    CHECK(Tensor::zeros({2}, {DType::i32, device}).to_vector<std::int32_t>() ==
          std::vector<std::int32_t>{0, 0});
    CHECK(Tensor::from(Floats{1.75F, -1.75F}, {2}, device).to(DType::i64).to_vector<float>() ==
          Floats{1, -1});
  }
}

TEST_CASE("tensor: values are converted to the type asked for") {
  const Tensor x = Tensor::from(std::vector<double>{0.1, 0.5}, {2}, {DType::f32, "ref:0"});
  CHECK(x.dtype() == DType::f32);
  CHECK(x.to_vector<double>() == std::vector<double>{0.1F, 0.5});
  CHECK(x.to(DType::f64).dtype() == DType::f64);
  CHECK(x.to(DType::f32).impl() == x.impl());
}

TEST_CASE("tensor: bf16 values are made on a device and read on the host") {
  testing::expect_error(ErrorKind::usage, {"bf16"}, [] {
    Tensor::from(Floats{1}, {1}, {DType::bf16, "ref:0"});
  });
  const Tensor x = Tensor::from(Floats{1.5F, -0.01F, 3e38F}, {3}, "emu:0").to(DType::bf16);
  // The nearest of 8 significant bits.
  CHECK(x.to_vector<float>() == Floats{1.5F, -0x1.48p-7F, 0x1.c4p+127F});
}

TEST_CASE("tensor: handles, slices and detached tensors share memory; clones do not") {
  for (const char* device : kDevices) {
    const Tensor x = Tensor::from(Floats{0, 1, 2, 3, 4, 5}, {3, 2}, device);
    const Tensor clone = x.clone();
    Tensor handle;
    handle = x;
    Tensor row = x.slice(1, 2);
    CHECK(row.shape() == Shape{1, 2});
    CHECK(row.to_vector<float>() == Floats{2, 3});
    row.fill_(9);
    CHECK(x.to_vector<float>() == Floats{0, 1, 9, 9, 4, 5});
    x.slice(1, 3).slice(1, 2).zero_();
    x.reshape({6}).slice(0, 1).fill_(-1);
    CHECK(handle.to_vector<float>() == Floats{-1, 1, 9, 9, 0, 0});
    x.detach().fill_(7);
    CHECK(row.to_vector<float>() == Floats{7, 7});
    CHECK(clone.to_vector<float>() == Floats{0, 1, 2, 3, 4, 5});
    CHECK(x.slice(1, 1).numel() == 0);
  }
}

TEST_CASE("tensor: split leaves the rest in the last part") {
  const Tensor x = Tensor::from(Floats{0, 1, 2, 3, 4}, {5, 1}, "ref:0");
  const std::vector<Tensor> parts = x.split(2);
  REQUIRE(parts.size() == 3);
  CHECK(parts[1].to_vector<float>() == Floats{2, 3});
  CHECK(parts[2].to_vector<float>() == Floats{4});
  CHECK(x.split(9).size() == 1);
  CHECK(x.slice(0, 0).split(2).size() == 1);
}

TEST_CASE("tensor: reshape fills in the open extent") {
  const Tensor x = Tensor::zeros({2, 3, 4}, {DType::f32, "ref:0"});
  CHECK(x.reshape({-1, 4}).shape() == Shape{6, 4});
  CHECK(x.reshape({24}).shape() == Shape{24});
  CHECK(x.flatten().shape() == Shape{2, 12});
  CHECK(x.reshape({2, 3, 4}).impl() == x.impl());
  CHECK(Tensor::zeros({0, 3}, {DType::f32, "ref:0"}).flatten().shape() == Shape{0, 3});
  CHECK(Tensor::full({1}, 3, {DType::f32, "ref:0"}).reshape({}).item() == 3);
}

TEST_CASE("tensor: copy_ takes any device and type, and keeps the target's") {
  Tensor target = Tensor::zeros({2}, {DType::f32, "cpu:0"});
  target.copy_(Tensor::from(std::vector<double>{1.5, -2}, {2}, "ref:1"));
  CHECK(target.to_vector<float>() == Floats{1.5, -2});
  CHECK(describe(target) == "f32 (2) on cpu:0");
  target.copy_(Tensor::from(std::vector<std::int64_t>{3, 4}, {2}, "ref:0"));
  CHECK(target.to_vector<float>() == Floats{3, 4});
  target.copy_(target);
  CHECK(target.to_vector<float>() == Floats{3, 4});
  Tensor whole = Tensor::from(Floats{1, 2, 3, 4}, {4}, "ref:0");
  whole.slice(0, 2).copy_(whole.slice(2, 4));
  CHECK(whole.to_vector<float>() == Floats{3, 4, 3, 4});
}

TEST_CASE("tensor: moves between devices") {
  const Tensor x = Tensor::from(Floats{1, 2, 3}, {3}, "ref:0");
  CHECK(x.to(Device("ref:0")).impl() == x.impl());
  for (const char* device : {"cpu:0", "ref:1", "cpu:1"}) {
    const Tensor there = x.to(Device(device));
    CHECK(there.device() == Device(device));
    CHECK(there.to(Device("ref:0")).to_vector<float>() == Floats{1, 2, 3});
  }
  // A part that does not start at the beginning of its memory.
  CHECK(x.slice(1, 3).to(Device("cpu:0")).to_vector<float>() == Floats{2, 3});
}

TEST_CASE("tensor: writes raise the version") {
  Tensor x = Tensor::zeros({2}, {DType::f32, "ref:0"});
  const std::uint64_t before = x.storage()->version();
  x.fill_(1);
  x.copy_(Tensor::ones({2}, {DType::f32, "ref:0"}));
  x.slice(0, 1).zero_();
  CHECK(x.storage()->version() == before + 3);
  x.to_vector<float>();
  CHECK(x.storage()->version() == before + 3);
}

TEST_CASE("tensor: streams of one device are chosen by scope") {
  DeviceContext& device = context("ref:0");
  const auto stream = device.make_stream();
  Tensor x;
  {
    StreamScope scope(*stream);
    CHECK(&current_stream("ref:0") == stream.get());
    x = Tensor::full({3}, 2, {DType::f32, "ref:0"});
    CHECK(x.to_vector<float>() == Floats{2, 2, 2});
    std::thread([&] { CHECK(&current_stream("ref:0") == &device.default_stream()); }).join();
  }
  CHECK(&current_stream("ref:0") == &device.default_stream());
}

TEST_CASE("tensor: sizes whose bytes do not fit are refused with the shape") {
  for (const char* device : {"ref:0", "cpu:0"}) {
    const TensorOptions options{DType::f32, device};
    const Shape shape{std::int64_t{1} << 62};
    testing::expect_error(ErrorKind::resource, {"(4611686018427387904)", "f32"},
                          [&] { Tensor::empty(shape, options); });
    testing::expect_error(ErrorKind::resource, {"(4611686018427387904)"},
                          [&] { Tensor::rand(shape, options); });
    testing::expect_error(ErrorKind::resource, {"(4611686018427387904)"},
                          [&] { Tensor::from_host(nullptr, shape, options); });
  }
}

TEST_CASE("tensor: devices that are not there") {
  testing::expect_error(ErrorKind::usage, {"cuda:0"}, [] {
    Tensor::zeros({1}, {DType::f32, "cuda:0"});
  });
  testing::expect_error(ErrorKind::usage, {"gpu"}, [] { Device("gpu:0"); });
}

}  // namespace convoy::testing
