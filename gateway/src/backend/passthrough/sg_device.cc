#include "passthrough/sg_device.h"

#include <scsi/sg.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>

#include "backend/failure.h"
#include "passthrough/sg_answer.h"

namespace sluice::passthrough {
namespace {

using backend::fail;
using Bytes = std::vector<uint8_t>;

constexpr uint32_t kTimeout = 5000;  // milliseconds
constexpr unsigned kAttempts = 8;    // a device may have several unit attentions pending
constexpr uint8_t kRoom = 252;       // bytes; fits 6-byte CDBs, and is a multiple of 4

std::string describe(const sg_io_hdr& header, ByteView sense) {
  const SenseCode code = sense_code(sense);
  char text[96];
  std::snprintf(text, sizeof text, "status %02xh, sense %02x/%02x/%02x, host %02xh", header.status,
                code.key, code.asc, code.ascq, header.host_status);
  return text;
}

}  // namespace

Result<Bytes> SgDevice::ask(ByteView cdb, uint32_t room, const char* name) const {
  std::array<uint8_t, 16> copy{};
  std::copy(cdb.begin(), cdb.end(), copy.begin());
  std::string last;
  for (unsigned attempt = 0; attempt < kAttempts; ++attempt) {
    Bytes data(room);
    std::array<uint8_t, 96> sense{};
    sg_io_hdr header = {};
    header.interface_id = 'S';
    header.cmd_len = static_cast<unsigned char>(cdb.size());
    header.cmdp = copy.data();
    header.mx_sb_len = static_cast<unsigned char>(sense.size());
    header.sbp = sense.data();
    header.dxfer_direction = room == 0 ? SG_DXFER_NONE : SG_DXFER_FROM_DEV;
    header.dxfer_len = room;
    header.dxferp = data.data();
    header.timeout = kTimeout;
    if (ioctl(fd_, SG_IO, &header) != 0) {
      const int error = errno;
      const bool gone = error == ENODEV || error == ENXIO;
      return fail(path_, std::string(name) + ": " + backend::why(error),
                  gone ? "reconnect it and restart the gateway" : "check the device");
    }
    const ByteView sense_data = ByteView(sense).first(header.sb_len_wr);
    const SgOutcome outcome = outcome_of(header, sense_data);
    if (outcome.error == 0) {
      data.resize(room -
                  static_cast<uint32_t>(std::clamp(header.resid, 0, static_cast<int>(room))));
      return data;
    }
    last = describe(header, sense_data);
    if (!outcome.retry) break;
  }
  return fail(path_, std::string(name) + " failed: " + last, "check the device");
}

Result<Bytes> SgDevice::page(uint8_t page) const {
  return ask(std::array<uint8_t, 6>{0x12, 0x01, page, 0x00, kRoom}, kRoom, "INQUIRY");
}

Result<ScsiMedium> SgDevice::capacity() const {
  const auto ready = ask(std::array<uint8_t, 6>{}, 0, "TEST UNIT READY");
  if (!ready) return Error{ready.error()};
  ScsiMedium medium;
  const auto data = ask(std::array<uint8_t, 16>{0x9e, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 32},
                        32, "READ CAPACITY(16)");
  Result<void> parsed;
  if (data) {
    parsed = parse_capacity16(data.value(), medium);
  } else {
    const auto small = ask(std::array<uint8_t, 10>{0x25}, 8, "READ CAPACITY(10)");
    if (!small) return Error{small.error()};
    parsed = parse_capacity10(small.value(), medium);
  }
  if (!parsed) return fail(path_, parsed.error(), "");
  return medium;
}

Result<ScsiMedium> SgDevice::query() const {
  const auto inquiry = ask(std::array<uint8_t, 6>{0x12, 0, 0, 0, 96}, 96, "INQUIRY");
  if (!inquiry) return Error{inquiry.error()};
  const Result<std::string> name = parse_inquiry(inquiry.value());
  if (!name) return fail(path_, name.error(), "");
  Result<ScsiMedium> medium = capacity();
  if (!medium) return medium;
  // A device without these has nothing of what they tell.
  if (const auto pages = page(0x00)) {
    using Parse = void (*)(ByteView, ScsiMedium&);
    constexpr std::pair<uint8_t, Parse> kPages[] = {
        {0xb0, parse_block_limits}, {0xb1, parse_characteristics}, {0xb2, parse_provisioning}};
    for (const auto& [number, parse] : kPages) {
      if (!lists_page(pages.value(), number)) continue;
      if (const auto data = page(number)) parse(data.value(), *medium);
    }
  }
  const auto mode =
      ask(std::array<uint8_t, 10>{0x5a, 0x08, 0x08, 0, 0, 0, 0, 0, kRoom}, kRoom, "MODE SENSE(10)");
  if (mode) parse_caching(mode.value(), *medium);
  return medium;
}

}  // namespace sluice::passthrough
