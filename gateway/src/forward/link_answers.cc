// What the owner says on a forwarding session (RFC 7143 §11; iscsi/forwarding_wire.h).
#include <algorithm>

#include "base/log.h"
#include "commands/handler.h"
#include "forward/link.h"
#include "nexus/pipeline.h"

namespace sluice::forward {

using pdu::Opcode;

void LinkToOwner::violation(const char* why) {
  log::error("an owner breaks the protocol", {{"owner", owner_.number}, {"reason", why}});
  if (stream_) stream_->drop(why);
}

void LinkToOwner::on_pdu(pdu::Pdu& pdu) {
  const auto alive = shared_from_this();
  const pdu::Bhs& h = pdu.header;
  switch (h.opcode()) {
    case Opcode::kNopIn:
      on_nop_in(pdu);
      break;
    case Opcode::kDataIn:
      on_data_in(pdu);
      break;
    case Opcode::kR2t:
      on_r2t(pdu);
      break;
    case Opcode::kScsiResponse:
      on_response(pdu);
      break;
    case Opcode::kTaskManagementResponse:
      on_function_response(h);
      break;
    case Opcode::kLogoutResponse:
      lose_stream();
      settle_lost(true);
      break;
    case Opcode::kAsyncMessage:
      // Asked to log out, and only that: what is in flight is still answered.
      if (h.u8(36) != static_cast<uint8_t>(pdu::AsyncEvent::kLogoutRequest)) {
        return violation("an asynchronous message that ends the session");
      }
      leaving_ = true;
      break;
    default:
      // Also for a Reject: an owner that rejects correct requests is not a valid peer.
      return violation("a PDU that has no place here");
  }
  if (!closed_) pump();
  if (!leaving_ || !open() || logout_sent_) return;
  const bool busy = std::any_of(entries_.begin(), entries_.end(), [](const auto& e) {
    return e->command && e->stage == Entry::Stage::kSent;
  });
  if (!busy && functions_sent_ == 0) log_out();
}

void LinkToOwner::on_nop_in(const pdu::Pdu& pdu) {
  const pdu::Bhs& h = pdu.header;
  if (h.target_transfer_tag() == pdu::kReservedTag) {
    if (pdu.data_size != iscsi::kTokenSize) return;  // it only tells the window
    std::array<uint8_t, iscsi::kTokenSize> token;
    size_t at = 0;
    for (const Slice& piece : pdu.data) {
      std::memcpy(token.data() + at, piece.data, piece.size);
      at += piece.size;
    }
    token_ = load_be64(token.data());
    return;
  }
  pdu::Bhs& answer = stream_->writer().start(Opcode::kNopOut);
  stream_->number(answer, pdu::kReservedTag, true);
  answer.set_flags(pdu::kFlagFinal);
  answer.set_lun(h.lun());
  answer.put32(20, h.target_transfer_tag());
  stream_->writer().finish();
  stream_->flush();
}

void LinkToOwner::on_data_in(pdu::Pdu& pdu) {
  const pdu::Bhs& h = pdu.header;
  Entry* entry = find(h.itt());
  if (!entry) return violation("data for a command that is not there");
  lun::Command& c = *entry->command;
  if (h.u32(40) != entry->received ||
      pdu.data_size > c.expected_data_in - std::min(c.expected_data_in, entry->received)) {
    return violation("data out of place");
  }
  entry->received += pdu.data_size;
  // Each PDU may bring but a few bytes, and a host may read slowly what is kept here for it.
  for (Slice& piece : pdu.data) entry->packer.add(c.data_in, std::move(piece));
  pdu.data.clear();
  if (!(h.flags() & pdu::kFlagStatus)) return;
  end_answered(*entry, h, {});
}

// The data goes out of the buffers it came in by.
void LinkToOwner::on_r2t(const pdu::Pdu& pdu) {
  const pdu::Bhs& h = pdu.header;
  Entry* entry = find(h.itt());
  if (!entry) return violation("asked for data of a command that is not there");
  lun::Command& c = *entry->command;
  uint32_t offset = h.u32(40);
  uint32_t left = h.u32(44);
  if (left == 0 || offset > c.data_out_size || left > c.data_out_size - offset) {
    return violation("asked for data that there is not");
  }
  const uint32_t segment = stream_->parameters().max_send_data_segment_length;
  size_t slice = 0;
  uint32_t skip = offset;
  for (; skip >= c.data_out[slice].size; ++slice) skip -= c.data_out[slice].size;
  for (uint32_t data_sn = 0; left != 0; ++data_sn) {
    const uint32_t n = std::min(left, segment);
    pdu::Bhs& out = stream_->writer().start(Opcode::kDataOut);
    // Data-Out has no CmdSN (RFC 7143 §11.7).
    stream_->number(out, h.itt(), true);
    out.put8(0, static_cast<uint8_t>(Opcode::kDataOut));
    out.put32(24, 0);
    out.set_flags(n == left ? pdu::kFlagFinal : uint8_t{0});
    out.set_lun(h.lun());
    out.put32(20, h.target_transfer_tag());
    out.put32(36, data_sn);
    out.put32(40, offset);
    for (uint32_t rest = n; rest != 0;) {
      const Slice& from = c.data_out[slice];
      const uint32_t take = std::min(rest, from.size - skip);
      stream_->writer().data({from.owner, from.data + skip, take});
      skip += take;
      if (skip == from.size) {
        ++slice;
        skip = 0;
      }
      rest -= take;
    }
    stream_->writer().finish();
    offset += n;
    left -= n;
  }
  stream_->flush();
}

void LinkToOwner::on_response(const pdu::Pdu& pdu) {
  const pdu::Bhs& h = pdu.header;
  Entry* entry = find(h.itt());
  if (!entry) return violation("an answer to a command that is not there");
  lun::Command& c = *entry->command;
  switch (h.u8(2)) {
    case 0x00:
      break;
    case iscsi::kResponseStale:
    case iscsi::kResponseNotOwner: {
      forget(*entry);
      return lun::return_forwarded(c);
    }
    case iscsi::kResponseUnknown:
      forget(*entry);
      c.drops_nexus = true;
      return lun::finish_good(c);
    case iscsi::kResponseAborted:
      return end_aborted(*entry);
    default:
      return violation("an answer with an unknown response code");
  }
  std::array<uint8_t, 2 + scsi::kMaxSenseBytes> segment{};
  size_t size = 0;
  for (const Slice& piece : pdu.data) {
    const size_t n = std::min<size_t>(piece.size, segment.size() - size);
    std::memcpy(segment.data() + size, piece.data, n);
    size += n;
  }
  const size_t sense = size < 2 ? 0 : std::min<size_t>(load_be16(segment.data()), size - 2);
  end_answered(*entry, h, ByteView(segment).subspan(2, sense));
}

// RFC 7143 §11.4.5: an overflow says how much more there would have been.
void LinkToOwner::end_answered(Entry& entry, const pdu::Bhs& h, ByteView sense) {
  lun::Command& c = *entry.command;
  const bool reads = c.data_out_size == 0;
  const uint32_t residual = h.u32(44);
  const uint32_t more = reads && (h.flags() & pdu::kFlagOverflow) ? residual : 0;
  // The host gets the same residual for its own data.
  if (!reads && (h.flags() & pdu::kFlagUnderflow)) {
    c.data_out_wanted = c.data_out_size - std::min(residual, c.data_out_size);
  } else if (!reads && (h.flags() & pdu::kFlagOverflow)) {
    c.data_out_wanted = c.data_out_size + residual;
  }
  forget(entry);
  lun::finish_forwarded(c, static_cast<scsi::Status>(h.u8(3)), sense, std::move(c.data_in), more);
}

}  // namespace sluice::forward
