#include "iscsi/login/text_exchange.h"

#include <gtest/gtest.h>

#include "base/limits.h"
#include "iscsi/login/keys.h"
#include "iscsi/login/login_dialogue.h"
#include "iscsi/login/send_targets.h"
#include "unit/test_reactors.h"

namespace sluice::iscsi {
namespace {

using Answer = TextExchange::Answer;
using Kind = TextExchange::Answer::Kind;

constexpr uint8_t kFinal = pdu::kFlagFinal;
constexpr uint8_t kMore = pdu::kFlagContinue;

// A full feature phase session over the dialogue's targets.
struct Session {
  explicit Session(bool discovery) {
    parameters.discovery = discovery;
    parameters.initiator_name = kHost;
    if (!discovery) parameters.target_name = kOpenTarget;
    parameters.max_send_data_segment_length = 8192;
  }
  Answer ask_text(uint8_t flags, std::string_view text, uint32_t ttt = pdu::kReservedTag) {
    if (!exchange) {
      exchange = std::make_unique<TextExchange>(
          TextExchange::Context{&gateway.exports, &parameters, local});
    }
    pdu::Bhs header;
    header.set_opcode(pdu::Opcode::kTextRequest);
    header.set_flags(flags);
    header.set_itt(itt);
    header.set_target_transfer_tag(ttt);
    return exchange->on_request(header, as_bytes(text));
  }
  Answer ask(uint8_t flags, const Keys& keys, uint32_t ttt = pdu::kReservedTag) {
    return ask_text(flags, text_of(keys), ttt);
  }
  // One request, one answer.
  Keys answer_to(const Keys& keys) {
    Answer answer = ask(kFinal, keys);
    EXPECT_EQ(answer.kind, Kind::kRespond);
    EXPECT_EQ(answer.header.flags(), kFinal);
    EXPECT_EQ(answer.header.target_transfer_tag(), pdu::kReservedTag);
    return keys_of(answer.text);
  }

  LoginDialogue gateway;
  Parameters parameters;
  std::string local = "192.0.2.1:3260";
  uint32_t itt = 0x77;
  std::unique_ptr<TextExchange> exchange;
};

Keys shown(std::string_view target) {
  return {"TargetName=" + std::string(target), "TargetAddress=192.0.2.1:3260,1"};
}

TEST(TextExchange, SendTargetsAllListsTheTargetsThatTheInitiatorMayAccess) {
  Session s(true);
  Keys expected;
  for (std::string_view target : {kChapTarget, kMutualTarget, kOpenTarget}) {
    for (const std::string& key : shown(target)) expected.push_back(key);
  }
  EXPECT_EQ(s.answer_to({"SendTargets=All"}), expected) << "sorted, without the private one";
  s.parameters.initiator_name = "iqn.2026-11.example:other";
  EXPECT_EQ(s.answer_to({"SendTargets=All"}).size(), expected.size() + 2);
}

TEST(TextExchange, TheResponseHeaderIsComplete) {
  Session s(true);
  Answer answer = s.ask(kFinal, {"SendTargets=" + std::string(kOpenTarget)});
  pdu::Bhs expected;
  expected.set_opcode(pdu::Opcode::kTextResponse);
  expected.set_flags(kFinal);
  expected.set_data_length(70);
  expected.set_itt(0x77);
  expected.set_target_transfer_tag(pdu::kReservedTag);
  EXPECT_EQ(answer.header.bytes, expected.bytes);
  EXPECT_EQ(answer.text, text_of(shown(kOpenTarget)));
  EXPECT_EQ(answer.text.size(), 70u);
}

TEST(TextExchange, SendTargetsWithANameListsThatTargetIfItIsVisible) {
  Session s(true);
  EXPECT_EQ(s.answer_to({"SendTargets=IQN.2026-11.dev.sluice:OPEN"}), shown(kOpenTarget));
  EXPECT_TRUE(s.answer_to({"SendTargets=" + std::string(kPrivateTarget)}).empty());
  EXPECT_TRUE(s.answer_to({"SendTargets=iqn.2026-11.dev.sluice:none"}).empty());
  EXPECT_EQ(s.answer_to({"SendTargets=nonsense"}), Keys{"SendTargets=Reject"});
  EXPECT_EQ(s.answer_to({"SendTargets="}), Keys{"SendTargets=Reject"})
      << "a discovery session has no target of its own";
}

TEST(TextExchange, ANormalSessionListsOnlyItsOwnTarget) {
  Session s(false);
  EXPECT_EQ(s.answer_to({"SendTargets="}), shown(kOpenTarget));
  EXPECT_EQ(s.answer_to({"SendTargets=" + std::string(kOpenTarget)}), shown(kOpenTarget));
  EXPECT_TRUE(s.answer_to({"SendTargets=" + std::string(kChapTarget)}).empty());
  EXPECT_EQ(s.answer_to({"SendTargets=All"}), Keys{"SendTargets=Reject"});
}

TEST(TextExchange, EveryPortalIsListedWithItsPortalGroup) {
  Session s(true);
  s.gateway.exports.set_portals({{"198.51.100.1:3260", 1, 1},
                                 {"[2001:db8::1]:3261", 2, 2},
                                 {"0.0.0.0:3262", 3, 3},
                                 {"[::]:3262", 3, 3},
                                 {"[::]:3262", 4, 4}});
  const std::string name = "TargetName=" + std::string(kOpenTarget);
  EXPECT_EQ(s.answer_to({"SendTargets=" + std::string(kOpenTarget)}),
            (Keys{name, "TargetAddress=198.51.100.1:3260,1", "TargetAddress=[2001:db8::1]:3261,2",
                  "TargetAddress=192.0.2.1:3262,3", "TargetAddress=192.0.2.1:3262,4"}));
}

TEST(SendTargets, WildcardsAreReportedAsTheAddressTheInitiatorConnectedTo) {
  EXPECT_EQ(shown_address("192.0.2.9:3260", "198.51.100.1:3260"), "192.0.2.9:3260");
  EXPECT_EQ(shown_address("[2001:db8::9]:3260", "198.51.100.1:3260"), "[2001:db8::9]:3260");
  EXPECT_EQ(shown_address("0.0.0.0:3261", "198.51.100.1:3260"), "198.51.100.1:3261");
  EXPECT_EQ(shown_address("[::]:3261", "[2001:db8::1]:3260"), "[2001:db8::1]:3261");
  EXPECT_EQ(shown_address("[::]:3261", "198.51.100.1:3260"), "198.51.100.1:3261");
  EXPECT_EQ(shown_address("[::]:3261", "[::ffff:198.51.100.1]:3260"), "198.51.100.1:3261");
  EXPECT_EQ(shown_address("0.0.0.0:3261", "[2001:db8::1]:3260"), "") << "not reachable so";
  EXPECT_EQ(shown_address("0.0.0.0:3261", ""), "");
  EXPECT_EQ(shown_address("192.0.2.9", ""), "192.0.2.9:3260");
}

TEST(TextExchange, TheSegmentLengthMayBeDeclaredAgain) {
  Session s(false);
  EXPECT_TRUE(s.answer_to({"MaxRecvDataSegmentLength=65536", "InitiatorAlias=new"}).empty());
  EXPECT_EQ(s.parameters.max_send_data_segment_length, 65536u);
  EXPECT_TRUE(s.parameters.initiator_declared_segment);
  EXPECT_EQ(s.parameters.initiator_alias, "new");
  EXPECT_TRUE(s.answer_to({"MaxRecvDataSegmentLength=512"}).empty());
  EXPECT_EQ(s.parameters.max_send_data_segment_length, 512u);
}

TEST(TextExchange, KeysOfTheLoginPhaseAreRejected) {
  Session s(false);
  for (const KeyRule& rule : all_keys()) {
    if ((rule.stages & kInFullFeature) != 0) continue;
    const std::string name(rule.name);
    EXPECT_EQ(s.answer_to({name + "=1"}), Keys{name + "=Reject"});
  }
  EXPECT_EQ(s.answer_to({"X-a=1"}), Keys{"X-a=NotUnderstood"});
  EXPECT_EQ(s.answer_to({"TargetAlias=x"}), Keys{"TargetAlias=Reject"});
  EXPECT_TRUE(s.answer_to({"TargetAddress=NotUnderstood"}).empty());
}

TEST(TextExchange, ARequestMayBeSplitAtAnyByte) {
  Session s(true);
  const std::string text = text_of({"SendTargets=" + std::string(kOpenTarget)});
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    Answer first = s.ask_text(kMore, text.substr(0, cut));
    ASSERT_EQ(first.kind, Kind::kRespond);
    ASSERT_EQ(first.header.flags(), 0);
    ASSERT_TRUE(first.text.empty());
    const uint32_t ttt = first.header.target_transfer_tag();
    ASSERT_NE(ttt, pdu::kReservedTag);
    Answer second = s.ask_text(kFinal, text.substr(cut), ttt);
    ASSERT_EQ(second.header.flags(), kFinal);
    ASSERT_EQ(keys_of(second.text), shown(kOpenTarget));
  }
}

TEST(TextExchange, ALongAnswerIsSentInPieces) {
  Session s(true);
  for (int i = 0; i < 2000; ++i) {
    s.gateway.add_target("iqn.2026-11.dev.sluice:many" + std::to_string(10000 + i), {});
  }
  s.parameters.max_send_data_segment_length = 4096;
  Answer part = s.ask(kFinal, {"SendTargets=All"});
  std::string text = part.text;
  unsigned parts = 1;
  for (; part.header.flags() == kMore; ++parts) {
    ASSERT_EQ(part.text.size(), 4096u);
    const uint32_t ttt = part.header.target_transfer_tag();
    ASSERT_NE(ttt, pdu::kReservedTag);
    part = s.ask(kFinal, {}, ttt);
    ASSERT_EQ(part.kind, Kind::kRespond);
    text += part.text;
  }
  EXPECT_EQ(part.header.flags(), kFinal);
  EXPECT_EQ(part.header.target_transfer_tag(), pdu::kReservedTag);
  EXPECT_EQ(keys_of(text).size(), 2u * 2003);
  EXPECT_GT(text.size(), limits::kMaxTextBytes) << "not bounded by what a request may be";
  EXPECT_EQ(parts, (text.size() + 4095) / 4096);
}

TEST(TextExchange, AnUnfinishedAnswerDoesNotRetainARemovedTarget) {
  Session s(true);
  s.parameters.max_send_data_segment_length = 64;
  const uint32_t ttt = s.ask(kFinal, {"SendTargets=All"}).header.target_transfer_tag();
  std::weak_ptr<lun::Target> removed = s.gateway.exports.find(kOpenTarget);
  lun::TestReactors reactors(1);
  s.gateway.exports.remove(kOpenTarget, reactors);
  EXPECT_TRUE(removed.expired());
  Answer part = s.ask(kFinal, {}, ttt);
  std::string rest = part.text;
  while (part.header.flags() == kMore) {
    part = s.ask(kFinal, {}, part.header.target_transfer_tag());
    rest += part.text;
  }
  EXPECT_EQ(rest.find(kOpenTarget), std::string::npos);
}

TEST(TextExchange, AnAnswerThatFillsASegmentNeedsNoSecond) {
  Session s(true);
  for (uint32_t size : {69u, 70u, 71u}) {
    s.parameters.max_send_data_segment_length = size;
    EXPECT_EQ(s.ask(kFinal, {"SendTargets=" + std::string(kOpenTarget)}).header.flags(),
              size < 70 ? kMore : kFinal);
  }
}

TEST(TextExchange, WithoutFinalTheExchangeStaysOpen) {
  Session s(false);
  Answer first = s.ask(0, {"MaxRecvDataSegmentLength=1024"});
  EXPECT_EQ(first.header.flags(), 0);
  const uint32_t ttt = first.header.target_transfer_tag();
  EXPECT_NE(ttt, pdu::kReservedTag);
  EXPECT_EQ(s.parameters.max_send_data_segment_length, 8192u) << "not in force before the end";
  EXPECT_EQ(s.ask(kFinal, {}, ttt).header.flags(), kFinal);
  EXPECT_EQ(s.parameters.max_send_data_segment_length, 1024u);
  EXPECT_EQ(s.ask(kFinal, {}, ttt).kind, Kind::kReject) << "the tag died with the exchange";
}

TEST(TextExchange, ARejectedExchangeChangesNothing) {
  const Keys bad[] = {{"MaxRecvDataSegmentLength=511"},
                      {"MaxRecvDataSegmentLength=Reject"},
                      {"SendTargets=", "SendTargets=All"},
                      {"MaxRecvDataSegmentLength=1024", "nonsense"},
                      {"MaxRecvDataSegmentLength=1024", "=x"}};
  for (const Keys& keys : bad) {
    Session s(false);
    Answer answer = s.ask(kFinal, keys);
    EXPECT_EQ(answer.kind, Kind::kReject) << keys.back();
    EXPECT_EQ(answer.reason, pdu::RejectReason::kProtocolError);
    EXPECT_EQ(s.parameters.max_send_data_segment_length, 8192u);
    EXPECT_EQ(s.answer_to({"SendTargets="}), shown(kOpenTarget)) << "the session goes on";
  }
}

TEST(TextExchange, AKeyIsNegotiatedOnceInOneExchange) {
  Session s(false);
  const uint32_t ttt = s.ask(0, {"MaxRecvDataSegmentLength=1024"}).header.target_transfer_tag();
  EXPECT_EQ(s.ask(kFinal, {"MaxRecvDataSegmentLength=2048"}, ttt).kind, Kind::kReject);
  EXPECT_EQ(s.parameters.max_send_data_segment_length, 8192u);
}

TEST(TextExchange, TagsThatBelongToNoExchangeAreRejected) {
  Session s(true);
  Answer stray = s.ask(kFinal, {"SendTargets=All"}, 5);
  EXPECT_EQ(stray.kind, Kind::kReject);
  EXPECT_EQ(stray.reason, pdu::RejectReason::kInvalidPduField);
  const uint32_t ttt = s.ask(kMore, {"SendTargets=All"}).header.target_transfer_tag();
  s.itt = 0x78;
  EXPECT_EQ(s.ask(kFinal, {}, ttt).kind, Kind::kReject) << "another task tag";
}

TEST(TextExchange, ANewExchangeEndsThePreviousExchange) {
  Session s(true);
  s.ask_text(kMore, "SendTargets=iqn");
  EXPECT_EQ(s.answer_to({"SendTargets=" + std::string(kOpenTarget)}), shown(kOpenTarget));
  s.ask_text(kMore, "SendTargets=iqn");
  s.exchange->reset();
  EXPECT_EQ(s.answer_to({"SendTargets=" + std::string(kOpenTarget)}), shown(kOpenTarget));
}

TEST(TextExchange, FinalAndContinueExcludeEachOther) {
  Session s(true);
  EXPECT_EQ(s.ask(kFinal | kMore, {"SendTargets=All"}).kind, Kind::kReject);
}

TEST(TextExchange, TextDuringAnUnfinishedAnswerIsRejected) {
  Session s(true);
  s.parameters.max_send_data_segment_length = 512;
  for (int i = 0; i < 20; ++i) {
    s.gateway.add_target("iqn.2026-11.dev.sluice:many" + std::to_string(i), {});
  }
  const uint32_t ttt = s.ask(kFinal, {"SendTargets=All"}).header.target_transfer_tag();
  EXPECT_EQ(s.ask(kFinal, {"SendTargets=All"}, ttt).kind, Kind::kReject);
}

TEST(TextExchange, RequestsAreBounded) {
  Session s(true);
  const std::string piece(limits::kMaxLoginSegment, 'x');
  Answer answer = s.ask_text(kMore, piece);
  for (unsigned i = 1; i < limits::kMaxTextBytes / limits::kMaxLoginSegment; ++i) {
    answer = s.ask_text(kMore, piece, answer.header.target_transfer_tag());
    ASSERT_EQ(answer.kind, Kind::kRespond);
  }
  EXPECT_EQ(s.ask_text(kFinal, "y", answer.header.target_transfer_tag()).kind, Kind::kReject);

  // Keys count over the whole exchange, however many requests it has.
  answer = s.ask(0, {"X-0=1"});
  for (unsigned i = 1; i < limits::kMaxKeysPerExchange; ++i) {
    answer = s.ask(0, {"X-0=1"}, answer.header.target_transfer_tag());
    ASSERT_EQ(answer.kind, Kind::kRespond);
  }
  EXPECT_EQ(s.ask(0, {"X-0=1"}, answer.header.target_transfer_tag()).kind, Kind::kReject);
}

}  // namespace
}  // namespace sluice::iscsi
