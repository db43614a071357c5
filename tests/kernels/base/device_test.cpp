#include "kernels/base/device.h"

#include "tests/support/expect_error.h"

namespace convoy::testing {

TEST_CASE("device: names are read and written") {
  for (const char* text : {"cpu:0", "cpu:17", "ref:1", "cuda:3", "emu:4095"}) {
    CHECK(to_string(Device(text)) == text);
  }
  CHECK(Device("cuda:3").type == DeviceType::cuda);
  CHECK(Device("cuda:3").index == 3);
  CHECK(Device(std::string("cpu")) == Device(DeviceType::cpu, 0));
  CHECK(Device() == Device("cpu:0"));
  CHECK(Device("cpu:0") < Device("cpu:1"));
}

TEST_CASE("device: anything else is refused, with its text") {
  for (const std::string text : {"", "gpu:0", "cpu:", "cpu:-1", "cpu:+1", "cpu:1x", "cpu:4096",
                                 "cpu:99999999999999999999", ":0", "CPU:0", "cpu:0:1", " cpu"}) {
    check_error([&] { Device device(text); }, ErrorKind::usage,
                "device: '" + text + "' is none; expected cpu:K, ref:K, cuda:K or emu:K");
  }
}

}  // namespace convoy::testing
