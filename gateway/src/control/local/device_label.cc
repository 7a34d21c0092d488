#include "control/local/device_label.h"

#include <unistd.h>

#include <array>
#include <cerrno>

#include "control/local/files.h"

namespace sluice::control {
namespace {

constexpr std::string_view kMagic = "sluice-device 1\n";
constexpr size_t kLabelBytes = 4096;
constexpr std::array<off_t, 2> kCopiesAt = {0, 64 << 10};
static_assert(kCopiesAt.back() + kLabelBytes <= kDeviceReserved);

// Removes "name value\n" from the front of `rest`.
bool take_line(std::string_view* rest, std::string_view name, std::string* value) {
  const size_t end = rest->find('\n');
  if (end == std::string_view::npos || !rest->starts_with(name) || end <= name.size() ||
      (*rest)[name.size()] != ' ') {
    return false;
  }
  *value = rest->substr(name.size() + 1, end - name.size() - 1);
  rest->remove_prefix(end + 1);
  return true;
}

Error failed(const char* what, const std::string& path, int error) {
  return Error{path + ": can't " + what + " its label: " + reason_of(error)};
}

}  // namespace

std::string format_label(const DeviceLabel& label) {
  const std::string text =
      std::string(kMagic) + "location " + label.location + "\nrecords " + label.records + '\n';
  return text + "crc32c " + checksum_text(text) + '\n';
}

std::optional<DeviceLabel> parse_label(std::string_view text) {
  std::string_view rest = text;
  DeviceLabel label;
  std::string seal;
  if (!rest.starts_with(kMagic)) return std::nullopt;
  rest.remove_prefix(kMagic.size());
  if (!take_line(&rest, "location", &label.location) ||
      !take_line(&rest, "records", &label.records)) {
    return std::nullopt;
  }
  const std::string_view sealed = text.substr(0, text.size() - rest.size());
  if (!take_line(&rest, "crc32c", &seal) || seal != checksum_text(sealed)) return std::nullopt;
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
    damaged = damaged || text.starts_with(kMagic);
  }
  if (damaged) {
    return Error{path +
                 ": its label is damaged, so whose data it holds is not known; restore its "
                 "first mebibyte, or, once nobody needs the data, `blkdiscard -z` it"};
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
