// Synchronous queries to a SCSI generic device: at the open, and about once a second by check().
// Not for reactors.
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

  // Queries all properties. The error names path, cause and remedy.
  Result<ScsiMedium> query() const;
  // Queries the capacity only; error: not ready.
  Result<ScsiMedium> capacity() const;

 private:
  // Sends a CDB and returns the data. Repeats the command after a unit attention.
  Result<std::vector<uint8_t>> ask(ByteView cdb, uint32_t room, const char* name) const;
  Result<std::vector<uint8_t>> page(uint8_t page) const;

  const int fd_;
  const std::string path_;
};

}  // namespace sluice::passthrough
