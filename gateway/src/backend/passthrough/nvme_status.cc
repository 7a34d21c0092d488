#include "passthrough/nvme_status.h"

#include <algorithm>
#include <cerrno>
#include <iterator>

namespace sluice::passthrough {
namespace {

using scsi::Sense;
using scsi::SenseKey;
using scsi::Status;

constexpr uint16_t kDoNotRetry = 0x4000;

struct Row {
  uint16_t code;  // SCT and SC
  int error;
  SenseKey key;
  uint8_t asc;
  uint8_t ascq;
};

// The reference gives aborted commands the status TASK ABORTED; that means "by another initiator"
// (SAM-5, Status codes) and can't carry sense, so they are CHECK CONDITION here, with the same
// sense.
constexpr Row kRows[] = {
    // Generic command status
    {0x001, EOPNOTSUPP, SenseKey::kIllegalRequest, 0x20, 0x00},  // Invalid Command Opcode
    {0x002, EINVAL, SenseKey::kIllegalRequest, 0x24, 0x00},      // Invalid Field in Command
    {0x004, EIO, SenseKey::kMediumError, 0x00, 0x00},            // Data Transfer Error
    {0x005, ENODEV, SenseKey::kAbortedCommand, 0x0b, 0x08},      // Aborted, Power Loss
    {0x006, EREMOTEIO, SenseKey::kHardwareError, 0x44, 0x00},    // Internal Error
    {0x007, ETIMEDOUT, SenseKey::kAbortedCommand, 0x00, 0x00},   // Command Abort Requested
    {0x008, ETIMEDOUT, SenseKey::kAbortedCommand, 0x00, 0x00},   // Aborted, SQ Deletion
    {0x009, EREMOTEIO, SenseKey::kAbortedCommand, 0x00, 0x00},   // Failed Fused Command
    {0x00a, EREMOTEIO, SenseKey::kAbortedCommand, 0x00, 0x00},   // Missing Fused Command
    {0x00b, ENODEV, SenseKey::kIllegalRequest, 0x20, 0x09},      // Invalid Namespace or Format
    {0x020, EROFS, SenseKey::kDataProtect, 0x27, 0x00},          // Namespace is Write Protected
    {0x080, EINVAL, SenseKey::kIllegalRequest, 0x21, 0x00},      // LBA Out of Range
    {0x081, ENOSPC, SenseKey::kMediumError, 0x00, 0x00},         // Capacity Exceeded
    {0x082, ENODEV, SenseKey::kNotReady, 0x04, 0x00},            // Namespace Not Ready
    {0x084, ENODEV, SenseKey::kNotReady, 0x04, 0x04},            // Format in Progress
    // Command specific status
    {0x10a, EINVAL, SenseKey::kMediumError, 0x31, 0x01},     // Invalid Format
    {0x180, EINVAL, SenseKey::kIllegalRequest, 0x24, 0x00},  // Conflicting Attributes
    {0x181, EINVAL, SenseKey::kIllegalRequest, 0x24, 0x00},  // Invalid Protection Information
    {0x182, EROFS, SenseKey::kDataProtect, 0x27, 0x00},      // Write to Read Only Range
    {0x183, EINVAL, SenseKey::kIllegalRequest, 0x24, 0x00},  // Command Size Limit Exceeded
    // Media and data integrity errors
    {0x280, EIO, SenseKey::kMediumError, 0x03, 0x00},        // Write Fault
    {0x281, EIO, SenseKey::kMediumError, 0x11, 0x00},        // Unrecovered Read Error
    {0x282, EILSEQ, SenseKey::kMediumError, 0x10, 0x01},     // Guard Check Error
    {0x283, EILSEQ, SenseKey::kMediumError, 0x10, 0x02},     // Application Tag Check Error
    {0x284, EILSEQ, SenseKey::kMediumError, 0x10, 0x03},     // Reference Tag Check Error
    {0x285, EILSEQ, SenseKey::kMiscompare, 0x1d, 0x00},      // Compare Failure
    {0x286, EACCES, SenseKey::kIllegalRequest, 0x20, 0x09},  // Access Denied
    {0x287, EIO, SenseKey::kMediumError, 0x11, 0x00},        // Deallocated Block
    // Path related status
    {0x300, ENODEV, SenseKey::kNotReady, 0x04, 0x00},  // Internal Path Error
    {0x301, ENODEV, SenseKey::kNotReady, 0x04, 0x0c},  // ANA Persistent Loss
    {0x302, ENODEV, SenseKey::kNotReady, 0x04, 0x0c},  // ANA Inaccessible
    {0x303, ENODEV, SenseKey::kNotReady, 0x04, 0x0a},  // ANA Transition
};

NvmeOutcome plain(int error, Status status) {
  NvmeOutcome o;
  o.error = error;
  o.status = status;
  return o;
}

}  // namespace

NvmeOutcome outcome_of(uint16_t status) {
  const uint16_t code = status & 0x7ff;
  if (code == 0) return {};
  if (code == 0x083) return plain(EBUSY, Status::kReservationConflict);
  NvmeOutcome o;
  o.status = Status::kCheckCondition;
  if (code == 0x021) o = plain(EAGAIN, Status::kBusy);  // Command Interrupted
  const auto row = std::find_if(std::begin(kRows), std::end(kRows),
                                [&](const Row& r) { return r.code == code; });
  if (row != std::end(kRows)) {
    o.error = row->error;
    o.sense = Sense::make(row->key, row->asc, row->ascq);
  } else if (o.error == 0) {  // vendor specific, or newer than this table
    o.error = EREMOTEIO;
    o.sense = Sense::make(SenseKey::kHardwareError, 0x44, 0x00);
  }
  // A medium error was tried often enough by the drive itself.
  const bool transient = code == 0x004 || code == 0x006 || code == 0x021;
  o.retry = transient && (status & kDoNotRetry) == 0;
  return o;
}

}  // namespace sluice::passthrough
