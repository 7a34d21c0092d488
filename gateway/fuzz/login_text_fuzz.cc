// Arbitrary text through Login and, after its success, through TextExchange.
//
// An input is a list of PDUs, each: flags (byte 1 of the header), length (2 bytes, big-endian; if
// the top bit is set, a whole header of 48 bytes precedes the text), text. The first byte of the
// input selects the gateway's requirements.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "iscsi/login/login.h"
#include "iscsi/login/text_exchange.h"
#include "nexus/exports.h"

namespace {

using namespace sluice;
using iscsi::Login;
using iscsi::LoginAnswer;
using iscsi::TextExchange;

constexpr uint16_t kWholeHeader = 0x8000;

// Invariants for every input. Aborts, so that the fuzzer detects a violation.
void require(bool holds) {
  if (!holds) std::abort();
}

void add_target(lun::Exports& exports, const char* name, const lun::HostAccess& access) {
  auto target = std::make_shared<lun::Target>(name, "alias", uint16_t{1});
  target->set_hosts({access});
  exports.add(std::move(target));
}

const lun::Exports& exports() {
  static const auto* made = [] {
    auto* all = new lun::Exports;
    lun::HostAccess access;
    add_target(*all, "iqn.2026-11.dev.sluice:open", access);
    access.chap = {"user", "a secret of 16 b"};
    access.mutual = {"target", "another secret!!"};
    add_target(*all, "iqn.2026-11.dev.sluice:chap", access);
    lun::HostAccess closed;
    closed.initiators = {"iqn.2026-11.example:other"};
    add_target(*all, "iqn.2026-11.dev.sluice:private", closed);
    all->set_portals({{"0.0.0.0:3260", 1, 1}, {"[2001:db8::1]:3260", 2, 2}});
    return all;
  }();
  return *made;
}

Login::Setup setup(uint8_t demands) {
  Login::Setup setup;
  setup.exports = &exports();
  setup.local_address = "192.0.2.1:3260";
  setup.random = [](uint8_t* out, size_t n) {
    for (size_t i = 0; i < n; ++i) out[i] = static_cast<uint8_t>(0xa0 + i);
  };
  iscsi::Offer& offer = setup.offer;
  if (demands & 1) offer.header_digest = iscsi::Offer::Digest::kRequire;
  if (demands & 2) offer.data_digest = iscsi::Offer::Digest::kRefuse;
  if (demands & 4) offer.immediate_data = false;
  if (demands & 8) offer.initial_r2t = true;
  if (demands & 16) offer.max_burst_length = 65536;
  if (demands & 32) offer.first_burst_length = 512;
  return setup;
}

struct Pdu {
  pdu::Bhs header;
  ByteView text;
};

bool next_pdu(ByteView* input, Pdu* out) {
  if (input->size() < 3) return false;
  const uint8_t flags = (*input)[0];
  const uint16_t length = load_be16(&(*input)[1]);
  *input = input->subspan(3);
  if (length & kWholeHeader) {
    if (input->size() < pdu::kBhsSize) return false;
    std::copy_n(input->data(), pdu::kBhsSize, out->header.data());
    *input = input->subspan(pdu::kBhsSize);
  }
  out->header.set_flags(flags);
  out->text = input->first(std::min<size_t>(length & ~kWholeHeader, input->size()));
  *input = input->subspan(out->text.size());
  out->header.set_data_length(static_cast<uint32_t>(out->text.size()));
  return true;
}

void check_agreed(const iscsi::Parameters& p) {
  require(p.max_connections == 1 && p.error_recovery_level == 0);
  require(p.data_pdu_in_order && p.data_sequence_in_order);
  require(p.max_outstanding_r2t >= 1 && p.max_outstanding_r2t <= limits::kMaxOutstandingR2t);
  require(p.max_send_data_segment_length >= 512 && p.max_burst_length <= limits::kMaxBurst);
  require(p.discovery || p.first_burst_length <= p.max_burst_length);
  require(p.target_name != "iqn.2026-11.dev.sluice:chap" || p.auth_method == "CHAP");
  require(p.target_name != "iqn.2026-11.dev.sluice:private" ||
          p.initiator_name == "iqn.2026-11.example:other");
}

void exchange_text(iscsi::Parameters parameters, ByteView input) {
  TextExchange exchange({&exports(), &parameters, "192.0.2.1:3260"});
  uint32_t open_tag = pdu::kReservedTag;
  Pdu next;
  next.header.set_target_transfer_tag(pdu::kReservedTag);
  while (next_pdu(&input, &next)) {
    // A fuzzer can't guess tags: the tag 1 in a request stands for the one it was given.
    if (next.header.target_transfer_tag() == 1) next.header.set_target_transfer_tag(open_tag);
    const uint32_t segment = parameters.max_send_data_segment_length;
    const TextExchange::Answer answer = exchange.on_request(next.header, next.text);
    require(answer.text.size() <= segment);
    open_tag = answer.header.target_transfer_tag();
    if (open_tag != pdu::kReservedTag) next.header.set_target_transfer_tag(1);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  ByteView input(data + 1, size - 1);
  Login login(setup(data[0]));
  Pdu next;
  while (next_pdu(&input, &next)) {
    LoginAnswer answer;
    const Login::Outcome outcome = login.on_request(next.header, next.text, &answer);
    if (outcome == Login::Outcome::kDrop) return 0;
    require(answer.text.size() <= limits::kMaxLoginSegment);
    require(answer.header.data_length() == answer.text.size());
    const bool failed = outcome == Login::Outcome::kFailed;
    require(failed == (login.status() != iscsi::LoginStatus::kSuccess));
    require(!failed || (answer.text.empty() && !login.reason().empty()));
    if (failed) return 0;
    if (outcome == Login::Outcome::kSucceeded) {
      check_agreed(login.parameters());
      exchange_text(login.parameters(), input);
      return 0;
    }
  }
  return 0;
}
