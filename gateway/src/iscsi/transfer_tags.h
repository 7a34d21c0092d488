// The Target Transfer Tags of a session: one sequence for R2Ts and pings (RFC 7143 §11.7.4).
#pragma once

#include <cstdint>

#include "pdu/bhs.h"

namespace sluice::iscsi {

class TransferTags {
 public:
  uint32_t next() {
    if (next_ == pdu::kReservedTag) next_ = 1;
    return next_++;
  }

 private:
  uint32_t next_ = 1;
};

}  // namespace sluice::iscsi
