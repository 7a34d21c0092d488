#include "control/local/device_label.h"

#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/record_text.h"
#include "control/local/files.h"

namespace sluice::control {
namespace {

constexpr std::string_view kHeading = "sluice-device 1";
constexpr size_t kLabelBytes = 4096;
constexpr std::array<off_t, 2> kCopiesAt = {0, 64 << 10};
static_assert(kCopiesAt.back() + kLabelBytes <= kDeviceReserved);

Error failed(const char* what, const std::string& path, int error) {
  return Error{path + ": can't " + what + " its label: " + reason_of(error)};
}

}  // namespace

std::string format_label(const DeviceLabel& label) {
  return seal(std::string(kHeading) + "\nlocation " + label.location + "\nrecords " +
              label.records + '\n');
}

std::optional<DeviceLabel> parse_label(std::string_view text) {
  const std::optional<std::string_view> body =
      unseal(text.substr(0, text.find_last_not_of('\0') + 1));
  if (!body) return std::nullopt;
  RecordReader lines(*body, kHeading);
  DeviceLabel label;
  label.location = lines.text("location");
  label.records = lines.text("records");
  if (!lines.complete()) return std::nullopt;
  return label;
}

Result<std::optional<DeviceLabel>> read_label(int device, const std::string& path) {
  bool damaged = false;
  for (const off_t at : kCopiesAt) {
    std::string text(kLabelBytes, '\0');
    const ssize_t n = ::pread(device, text.data(), text.size(), at);
    if (n < 0) return failed("read", path, errno);
    text.resize(static_cast<size_t>(n));
    if (auto label = parse_label(text)) return label;
    damaged = damaged || text.starts_with(kHeading);
  }
  if (damaged) {
    return Error{path +
                 ": its label is damaged, so whose data it holds is not known; restore its "
                 "first mebibyte, or, once the data is not needed, `blkdiscard -z` it"};
  }
  return std::optional<DeviceLabel>();
}

Result<void> write_label(int device, const DeviceLabel& label, const std::string& path) {
  std::string text = format_label(label);
  text.resize(kLabelBytes, '\0');
  for (const off_t at : kCopiesAt) {
    const ssize_t n = ::pwrite(device, text.data(), text.size(), at);
    if (n != static_cast<ssize_t>(text.size())) return failed("write", path, n < 0 ? errno : EIO);
    if (::fsync(device) != 0) return failed("write", path, errno);
  }
  return {};
}

}  // namespace sluice::control
