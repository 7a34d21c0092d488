// Parameter lists of POPULATE TOKEN and WRITE USING TOKEN (SBC-4 §5.13, §5.56) and parameter data
// of RECEIVE ROD TOKEN INFORMATION (SPC-5 §6.25).
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "scsi/outcome.h"
#include "scsi/rod_token.h"
#include "scsi/third_party_copy.h"
#include "scsi/unmap_list.h"

namespace sluice::scsi {

// Block device range descriptors, 16 bytes each (SBC-4 §5.13.3). A view into the parameter list.
class RangeList {
 public:
  RangeList() = default;
  explicit RangeList(ByteView descriptors) : descriptors_(descriptors) {}
  size_t size() const { return descriptors_.size() / 16; }
  BlockExtent at(size_t index) const;
  uint64_t total_blocks() const;

 private:
  ByteView descriptors_{};
};

struct PopulateToken {
  uint32_t list_id = 0;
  bool immed = false;
  uint32_t inactivity_seconds = 0;  // 0: default
  bool type_valid = false;          // RTV
  uint32_t rod_type = 0;
  RangeList ranges{};
};

struct WriteUsingToken {
  uint32_t list_id = 0;
  bool immed = false;
  bool delete_token = false;   // DEL_TKN
  uint64_t offset_blocks = 0;  // OFFSET INTO ROD
  ByteView token{};            // 512 bytes
  RangeList ranges{};
};

struct TokenBounds {
  uint64_t blocks = 0;  // capacity
  uint16_t max_ranges = 0;
  uint64_t max_blocks = 0;  // sum over all ranges; 0: no limit
  uint32_t max_inactivity_seconds = 0;
};

// A PARAMETER LIST LENGTH of 0 is no error and gives no ranges: nothing to do.
// Errors: 05/1A/00 (lengths), 05/26/00 with field pointer (0 ranges, overlapping ranges, unknown
// ROD type, too long a timer), 05/26/08 (too many ranges), 05/21/00.
Outcome<PopulateToken> parse_populate_token(ByteView cdb, const TokenBounds& bounds, ByteView data);
// The token itself isn't looked into: parse_rod_token().
Outcome<WriteUsingToken> parse_write_using_token(ByteView cdb, const TokenBounds& bounds,
                                                 ByteView data);

// LIST IDENTIFIER of POPULATE TOKEN, WRITE USING TOKEN and RECEIVE ROD TOKEN INFORMATION.
uint32_t token_list_id(ByteView cdb);

enum class TokenOperationState : uint8_t {  // COPY OPERATION STATUS, SPC-5 table 270
  kCompletedWithoutErrors = 0x01,
  kCompletedWithErrors = 0x02,
  kCompletedWithoutErrorsPartialRod = 0x03,  // fewer blocks than asked, none failed
  kInProgressForeground = 0x11,
  kInProgressBackground = 0x12,
  kTerminated = 0x60,
};

struct TokenOperation {
  bool populate = false;  // RESPONSE TO SERVICE ACTION 10h (POPULATE TOKEN) or 11h
  TokenOperationState state = TokenOperationState::kCompletedWithoutErrors;
  uint64_t blocks_transferred = 0;
  uint16_t segments_processed = 0;
  uint32_t update_delay_ms = 0;          // ESTIMATED STATUS UPDATE DELAY; 0 when it is complete
  Status status = Status::kGood;         // of the operation
  Sense sense{};                         // when status is CHECK CONDITION
  const RodTokenBytes* token = nullptr;  // populate, completed: the token
};

size_t build_rod_token_information(const TokenOperation& operation, bool descriptor_sense,
                                   MutableBytes out);

}  // namespace sluice::scsi
