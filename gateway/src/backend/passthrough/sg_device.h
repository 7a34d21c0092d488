// Questions to a SCSI generic device, one after the other, each waited for: while it is opened, and
// about once a second by check(). Not for reactors.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "passthrough/scsi_medium.h"

namespace sluice::passthrough {

class SgDevice {
 public:
  SgDevice(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}

  // All that it tells of itself. The error names path, cause and mend.
  Result<ScsiMedium> look() const;
  // Capacity alone; an error while it isn't ready.
  Result<ScsiMedium> capacity() const;

 private:
  // Sends a CDB and returns what came. A unit attention is cleared by asking again.
  Result<std::vector<uint8_t>> ask(ByteView cdb, uint32_t room, const char* name) const;
  Result<std::vector<uint8_t>> page(uint8_t page) const;

  const int fd_;
  const std::string path_;
};

}  // namespace sluice::passthrough
