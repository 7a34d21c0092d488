#include "passthrough/sg_answer.h"

#include <cerrno>

namespace sluice::passthrough {
namespace {

enum Status : uint8_t {
  kCheckCondition = 0x02,
  kConditionMet = 0x04,
  kBusy = 0x08,
  kReservationConflict = 0x18,
  kTaskSetFull = 0x28
};

// Documentation/scsi and include/scsi/scsi_status.h: what the host adapter or its transport says.
int error_of_host(uint16_t host) {
  switch (host) {
    case 0x01:  // DID_NO_CONNECT
    case 0x04:  // DID_BAD_TARGET
    case 0x0f:  // DID_TRANSPORT_FAILFAST
      return ENODEV;
    case 0x02:  // DID_BUS_BUSY
    case 0x0c:  // DID_IMM_RETRY
    case 0x0d:  // DID_REQUEUE
    case 0x0e:  // DID_TRANSPORT_DISRUPTED
      return EAGAIN;
    case 0x03:  // DID_TIME_OUT
    case 0x05:  // DID_ABORT
    case 0x08:  // DID_RESET
      return ETIMEDOUT;
    default:
      return EREMOTEIO;
  }
}

int error_of_sense(SenseCode code) {
  switch (code.key) {
    case 0x2:  // NOT READY
      return ENODEV;
    case 0x3:  // MEDIUM ERROR
      return EIO;
    case 0x5:  // ILLEGAL REQUEST
      return code.asc == 0x21 ? EINVAL : EOPNOTSUPP;
    case 0x7:  // DATA PROTECT; SPACE ALLOCATION FAILED WRITE PROTECT
      return code.asc == 0x27 && code.ascq == 0x07 ? ENOSPC : EROFS;
    case 0xb:  // ABORTED COMMAND
      return ETIMEDOUT;
    default:
      return EREMOTEIO;
  }
}

// What it tells is about an earlier command; the present one was not processed (SPC-5, Deferred
// errors).
bool is_deferred(ByteView sense) {
  const unsigned format = sense.empty() ? 0 : sense[0] & 0x7f;
  return format == 0x71 || format == 0x73;
}

SgOutcome of_check_condition(ByteView sense) {
  const SenseCode code = sense_code(sense);
  if (is_deferred(sense)) {
    // A deferred error: the host learns that an earlier write failed, and sends the present command
    // again. A recovered error of an earlier command is ignored.
    return {
        .error = error_of_sense(code), .answered = true, .retry = code.key <= 1, .refused = false};
  }
  // NO SENSE, RECOVERED ERROR: it was done.
  if (!sense.empty() && (code.key == 0x0 || code.key == 0x1)) return {};
  SgOutcome o;
  o.error = error_of_sense(code);
  o.answered = true;
  // A unit attention concerns only the device and this machine. check() detects what it announces
  // (another capacity, a reset), and the unit reports that to hosts.
  o.retry = code.key == 0x6;
  o.refused = code.key == 0x5 && (code.asc == 0x20 || code.asc == 0x24);
  return o;
}

}  // namespace

SenseCode sense_code(ByteView sense) {
  if (sense.empty()) return {};
  const unsigned format = sense[0] & 0x7f;
  if (format == 0x70 || format == 0x71) {
    if (sense.size() < 3) return {};
    if (sense.size() < 14) return {static_cast<uint8_t>(sense[2] & 0x0f), 0, 0};
    return {static_cast<uint8_t>(sense[2] & 0x0f), sense[12], sense[13]};
  }
  if ((format == 0x72 || format == 0x73) && sense.size() >= 4) {
    return {static_cast<uint8_t>(sense[1] & 0x0f), sense[2], sense[3]};
  }
  return {};
}

SgOutcome outcome_of(const sg_io_hdr& header, ByteView sense) {
  SgOutcome o;
  // First: what a host adapter says of a command that has no status means nothing beside one.
  switch (header.status & 0x7e) {
    case kCheckCondition:
      return of_check_condition(sense);
    case kBusy:
    case kTaskSetFull:
      o.error = EAGAIN;
      o.answered = true;
      return o;
    case kReservationConflict:
      o.error = EBUSY;
      o.answered = true;
      return o;
    case 0:
    case kConditionMet:
      break;
    default:
      o.error = EREMOTEIO;
      return o;
  }
  if (header.host_status != 0) o.error = error_of_host(header.host_status);
  return o;
}

}  // namespace sluice::passthrough
