// Either side of a forwarding session against one that says what it shouldn't.
#include <gtest/gtest.h>

#include "iscsi/forwarding_wire.h"
#include "simulation/gateway_pair.h"
#include "simulation/initiator.h"
#include "unit/unit.h"

namespace sluice::simulation {
namespace {

using Bytes = std::vector<uint8_t>;
using pdu::Opcode;

constexpr uint32_t kFirstTag = 0x1000;  // of a link's first command

class ForwardingProtocol : public testing::Test {
 protected:
  void SetUp() override {
    nexus_ = pair_.open_nexus();
    link_ = pair_.link(nexus_);
  }
  // A command that the owner is busy with, which it has not answered.
  std::shared_ptr<ForwardedCommand> busy(ByteView cdb, uint32_t data_in, ByteView out = {}) {
    pair_.owner.disk().hold(true);
    auto c = pair_.run(*nexus_, cdb, data_in, out);
    EXPECT_FALSE(c->ended);
    return c;
  }
  static pdu::Bhs answer(Opcode opcode, uint8_t flags, uint32_t tag = kFirstTag) {
    pdu::Bhs h;
    h.set_opcode(opcode);
    h.set_flags(flags);
    h.set_itt(tag);
    h.put32(28, 2);
    h.put32(32, 100);
    return h;
  }
  void say(const pdu::Bhs& h, ByteView data = {}) {
    pdu::Bhs with = h;
    with.set_data_length(static_cast<uint32_t>(data.size()));
    Bytes bytes(with.data(), with.data() + pdu::kBhsSize);
    bytes.insert(bytes.end(), data.begin(), data.end());
    bytes.resize(pdu::padded(static_cast<uint32_t>(bytes.size())));
    pair_.send_as_owner(bytes);
  }
  bool open() const { return static_cast<forward::LinkToOwner&>(*link_).open(); }
  void expect_left(const char* why) {
    EXPECT_FALSE(open()) << why;
    pair_.owner.disk().hold(false);
    pair_.owner.disk().release_all();
    pair_.advance(kSecond);
    EXPECT_EQ(pair_.origin.buffers().in_use(), 0u) << why;
  }

  GatewayPair pair_;
  std::shared_ptr<lun::Nexus> nexus_;
  std::shared_ptr<lun::Link> link_;
};

TEST_F(ForwardingProtocol, CommandsWithoutATokenAndAnEpochAreRejected) {
  EXPECT_EQ(pair_.run(*nexus_, kTestUnitReady, 0)->command.status, scsi::Status::kGood);
  Initiator raw(*pair_.far_end());
  raw.cmd_sn = 2;
  std::array<uint8_t, iscsi::kForwardedAhsSize> ahs;
  iscsi::store_forwarded({7, 0}, ahs.data());
  Bytes twice;
  iscsi::store_forwarded({7, 1}, ahs.data());
  for (int i = 0; i < 2; ++i) twice.insert(twice.end(), ahs.begin(), ahs.end());
  Bytes no_epoch(ahs.begin(), ahs.end());
  std::fill(no_epoch.begin() + 12, no_epoch.end(), uint8_t{0});
  Bytes short_one(ahs.begin(), ahs.begin() + 16);
  short_one[1] = 13;
  for (const Bytes& bad : {Bytes{}, twice, no_epoch, short_one}) {
    raw.send(raw.command(kTestUnitReady, pdu::kFlagFinal | 1, 0), {}, bad);
    const auto a = raw.answer();
    ASSERT_TRUE(a);
    EXPECT_EQ(a->header.opcode(), Opcode::kReject);
    EXPECT_EQ(a->header.u8(2), 0x09);
  }
  raw.send(raw.command(kTestUnitReady, pdu::kFlagFinal | 1, 0), {}, ahs);
  const auto a = raw.answer();
  ASSERT_TRUE(a);
  EXPECT_EQ(a->header.opcode(), Opcode::kScsiResponse);
  EXPECT_EQ(a->header.u8(2), iscsi::kResponseStale) << "a token that was never issued";
}

TEST_F(ForwardingProtocol, AHostsCommandWithTheForwardingHeaderIsRejected) {
  Initiator host(pair_.owner.connect());
  ASSERT_TRUE(host.login());
  std::array<uint8_t, iscsi::kForwardedAhsSize> ahs;
  iscsi::store_forwarded({7, 1}, ahs.data());
  host.send(host.command(kTestUnitReady, pdu::kFlagFinal | 1, 0), {}, ahs);
  const auto a = host.answer();
  ASSERT_TRUE(a);
  EXPECT_EQ(a->header.opcode(), Opcode::kReject);
}

TEST_F(ForwardingProtocol, ANotOwnerResponseRetainsTheCommandForTheNextOwner) {
  const auto w = busy(write16(0, 1), 0, Bytes(512, 1));
  pdu::Bhs h = answer(Opcode::kScsiResponse, pdu::kFlagFinal);
  h.put8(2, iscsi::kResponseNotOwner);
  say(h);
  EXPECT_FALSE(w->ended);
  EXPECT_EQ(w->command.stage, lun::Stage::kHeld) << "for the next owner";
  EXPECT_TRUE(open());
}

TEST_F(ForwardingProtocol, ACommandForAnOwnerOfAnotherEpochEndsAsUnavailable) {
  {
    const std::lock_guard lock(pair_.owner.unit()->mutex());
    pair_.owner.unit()->set_role_locked({lun::Standing::kOwner, 2, GatewayPair::kOwner});
  }
  const auto w = pair_.run(*nexus_, write16(0, 1), 0, Bytes(512, 0xee));
  EXPECT_FALSE(w->ended);
  pair_.advance(limits::kHoldCommands + 3 * limits::kTick);
  EXPECT_TRUE(w->unavailable());
  const auto other = pair_.run(*nexus_, read16(0, 1), 512, {}, 1);
  EXPECT_EQ(other->command.status, scsi::Status::kGood) << "other units are not disturbed";
}

TEST_F(ForwardingProtocol, AnUnknownOutcomeAtTheOwnerDropsTheNexus) {
  const auto w = busy(write16(0, 1), 0, Bytes(512, 1));
  pdu::Bhs h = answer(Opcode::kScsiResponse, pdu::kFlagFinal);
  h.put8(2, iscsi::kResponseUnknown);
  say(h);
  EXPECT_TRUE(w->ended);
  EXPECT_EQ(w->command.outcome, lun::Outcome::kUnknown);
}

// Each PDU comes in a receive buffer of its own here, as on a busy reactor.
TEST_F(ForwardingProtocol, SmallDataInPdusOccupyMemoryInProportionToTheirData) {
  constexpr uint32_t kPiece = 8;
  constexpr uint32_t kAll = 64 * 512;
  const auto r = busy(read16(0, 64), kAll);
  Bytes all;
  size_t most = 0;
  for (uint32_t n = 0; n < kAll / kPiece; ++n) {
    const Bytes data(kPiece, static_cast<uint8_t>(n * 31));
    pdu::Bhs h = answer(Opcode::kDataIn, 0);
    h.put32(36, n);
    h.put32(40, n * kPiece);
    all.insert(all.end(), data.begin(), data.end());
    if (all.size() == kAll) h.set_flags(pdu::kFlagFinal | pdu::kFlagStatus);
    say(h, data);
    most = std::max(most, pair_.origin.buffers().in_use());
  }
  EXPECT_LE(most, 4 * kAll);
  ASSERT_TRUE(r->ended);
  EXPECT_TRUE(r->data_in() == all);
}

TEST_F(ForwardingProtocol, AnOwnerThatViolatesTheProtocolIsDisconnected) {
  struct Wrong {
    const char* why;
    pdu::Bhs header;
    size_t data = 0;
  };
  std::vector<Wrong> wrongs;
  wrongs.push_back({"a response to nothing", answer(Opcode::kScsiResponse, 0x80, 0x5000)});
  wrongs.push_back({"data for nothing", answer(Opcode::kDataIn, 0x80, 0x5000), 512});
  wrongs.push_back({"more data than there is room for", answer(Opcode::kDataIn, 0x80), 1024});
  wrongs.push_back({"data out of place", answer(Opcode::kDataIn, 0x80), 512});
  wrongs.back().header.put32(40, 4);
  wrongs.push_back({"a question for data that there is not", answer(Opcode::kR2t, 0x80)});
  wrongs.back().header.put32(44, 512);
  wrongs.push_back({"a question for nothing", answer(Opcode::kR2t, 0x80)});
  wrongs.push_back({"an unknown response code", answer(Opcode::kScsiResponse, 0x80)});
  wrongs.back().header.put8(2, 0xfe);
  wrongs.push_back({"a reject", answer(Opcode::kReject, 0x80)});
  wrongs.push_back({"a login response", answer(Opcode::kLoginResponse, 0x80)});
  wrongs.push_back({"an end that was not asked for", answer(Opcode::kAsyncMessage, 0x80)});
  wrongs.back().header.put8(36, 3);
  wrongs.push_back({"a segment too long", answer(Opcode::kDataIn, 0x80)});
  wrongs.back().header.set_data_length(0xffffff);
  for (const Wrong& wrong : wrongs) {
    const auto r = busy(read16(0, 1), 512);
    const bool long_one = wrong.header.data_length() != 0;
    if (long_one) {
      pair_.send_as_owner({wrong.header.data(), pdu::kBhsSize});
    } else {
      say(wrong.header, Bytes(wrong.data, 0x55));
    }
    expect_left(wrong.why);
    EXPECT_TRUE(r->ended) << wrong.why;
    EXPECT_NE(r->command.status, scsi::Status::kGood) << wrong.why;
    link_->close(false, [] {});
    pair_.settle();
    link_ = pair_.link(nexus_ = pair_.open_nexus());
  }
}

TEST_F(ForwardingProtocol, ReadDataLiesWithinTheBuffersThatOwnIt) {
  const auto r = pair_.run(*nexus_, read16(0, 64), 64 * 512);
  ASSERT_TRUE(r->ended);
  ASSERT_FALSE(r->command.data_in.empty());
  for (const Slice& s : r->command.data_in) {
    EXPECT_GE(s.data, s.owner.data());
    EXPECT_LE(s.data + s.size, s.owner.data() + s.owner.capacity());
  }
}

}  // namespace
}  // namespace sluice::simulation
