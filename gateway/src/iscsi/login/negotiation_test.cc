#include "iscsi/login/negotiation.h"

#include <gtest/gtest.h>

#include "iscsi/login/login_dialogue.h"

namespace sluice::iscsi {
namespace {

Result<Keys> answers(Negotiation& negotiation, const Keys& keys) {
  const std::string text = text_of(keys);
  auto pairs = parse_text(text);
  if (!pairs) return Error{pairs.error()};
  std::string answer;
  Result<void> taken = negotiation.take(*pairs, &answer);
  if (!taken) return Error{taken.error()};
  return keys_of(answer);
}

// What a fresh negotiation answers to one key.
std::string answer_to(const std::string& key, const Offer& offer = {}, bool discovery = false) {
  Negotiation negotiation(offer);
  negotiation.set_discovery(discovery);
  Result<Keys> got = answers(negotiation, {key});
  if (!got) return "error";
  return got->empty() ? "" : got->front().substr(got->front().find('=') + 1);
}

TEST(Keys, TheTableHoldsEveryKeyUnderItsName) {
  EXPECT_EQ(all_keys().size(), kKeyCount);
  for (const KeyRule& rule : all_keys()) {
    EXPECT_EQ(find_key(rule.name), &rule_of(rule.key)) << rule.name;
    EXPECT_LE(rule.minimum, rule.maximum) << rule.name;
    EXPECT_NE(rule.stages, 0) << rule.name;
  }
  EXPECT_EQ(find_key("X-com.example"), nullptr);
  EXPECT_EQ(find_key("maxconnections"), nullptr) << "keys are case sensitive";
}

struct Case {
  const char* offered;
  const char* answer;
};

TEST(Negotiation, AnswersNumbersByTheirRuleWithinTheirRange) {
  // Ours: bursts 1048576 and 262144, 8 R2Ts, Time2Wait 2, Time2Retain 0, level 2.
  const Case cases[] = {
      {"MaxConnections=1", "1"},
      {"MaxConnections=65535", "1"},
      {"MaxConnections=0", "Reject"},
      {"MaxConnections=65536", "Reject"},
      {"MaxBurstLength=512", "512"},
      {"MaxBurstLength=511", "Reject"},
      {"MaxBurstLength=262144", "262144"},
      {"MaxBurstLength=0x40000", "262144"},
      {"MaxBurstLength=16777215", "1048576"},
      {"MaxBurstLength=16777216", "Reject"},
      {"FirstBurstLength=512", "512"},
      {"FirstBurstLength=511", "Reject"},
      {"FirstBurstLength=16777215", "262144"},
      {"FirstBurstLength=16777216", "Reject"},
      {"DefaultTime2Wait=0", "2"},
      {"DefaultTime2Wait=2", "2"},
      {"DefaultTime2Wait=3600", "3600"},
      {"DefaultTime2Wait=3601", "Reject"},
      {"DefaultTime2Retain=0", "0"},
      {"DefaultTime2Retain=3600", "0"},
      {"DefaultTime2Retain=3601", "Reject"},
      {"MaxOutstandingR2T=1", "1"},
      {"MaxOutstandingR2T=8", "8"},
      {"MaxOutstandingR2T=65535", "8"},
      {"MaxOutstandingR2T=0", "Reject"},
      {"MaxOutstandingR2T=65536", "Reject"},
      {"ErrorRecoveryLevel=0", "0"},
      {"ErrorRecoveryLevel=1", "0"},
      {"ErrorRecoveryLevel=2", "0"},
      {"ErrorRecoveryLevel=3", "Reject"},
      {"iSCSIProtocolLevel=0", "0"},
      {"iSCSIProtocolLevel=1", "1"},
      {"iSCSIProtocolLevel=2", "1"},
      {"iSCSIProtocolLevel=31", "1"},
      {"iSCSIProtocolLevel=32", "Reject"},
      {"MaxBurstLength=many", "Reject"},
      {"MaxBurstLength=", "Reject"},
      {"MaxBurstLength=512~1024", "Reject"},
      {"MaxBurstLength=4294967808", "Reject"},
      {"MaxBurstLength=18446744073709551616", "Reject"},
  };
  for (const Case& c : cases) EXPECT_EQ(answer_to(c.offered), c.answer) << c.offered;
}

TEST(Negotiation, AnswersBooleansByAndOrOr) {
  Offer strict;
  strict.initial_r2t = true;
  strict.immediate_data = false;
  const struct {
    const char* offered;
    const char* lax;
    const char* strict;
  } cases[] = {
      {"InitialR2T=Yes", "Yes", "Yes"},
      {"InitialR2T=No", "No", "Yes"},
      {"InitialR2T=Maybe", "Reject", "Reject"},
      {"ImmediateData=Yes", "Yes", "No"},
      {"ImmediateData=No", "No", "No"},
      {"ImmediateData=yes", "Reject", "Reject"},
      {"DataPDUInOrder=Yes", "Yes", "Yes"},
      {"DataPDUInOrder=No", "Yes", "Yes"},
      {"DataSequenceInOrder=Yes", "Yes", "Yes"},
      {"DataSequenceInOrder=No", "Yes", "Yes"},
      {"DataSequenceInOrder=", "Reject", "Reject"},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(answer_to(c.offered), c.lax) << c.offered;
    EXPECT_EQ(answer_to(c.offered, strict), c.strict) << c.offered;
  }
}

TEST(Negotiation, AnswersListsWithTheFirstValueThatIsAllowed) {
  Offer require;
  require.header_digest = require.data_digest = Offer::Digest::kRequire;
  Offer refuse;
  refuse.header_digest = refuse.data_digest = Offer::Digest::kRefuse;
  const struct {
    const char* offered;
    const char* allow;
    const char* require;
    const char* refuse;
  } cases[] = {
      {"None", "None", "Reject", "None"},
      {"CRC32C", "CRC32C", "CRC32C", "Reject"},
      {"None,CRC32C", "None", "CRC32C", "None"},
      {"CRC32C,None", "CRC32C", "CRC32C", "None"},
      {"X-sha,CRC32C,None", "CRC32C", "CRC32C", "None"},
      {"X-sha", "Reject", "Reject", "Reject"},
      {"CRC32C,", "Reject", "Reject", "Reject"},
      {"", "Reject", "Reject", "Reject"},
  };
  for (const auto& c : cases) {
    for (const char* key : {"HeaderDigest=", "DataDigest="}) {
      EXPECT_EQ(answer_to(key + std::string(c.offered)), c.allow) << c.offered;
      EXPECT_EQ(answer_to(key + std::string(c.offered), require), c.require) << c.offered;
      EXPECT_EQ(answer_to(key + std::string(c.offered), refuse), c.refuse) << c.offered;
    }
  }
  EXPECT_EQ(answer_to("TaskReporting=RFC3720"), "RFC3720");
  EXPECT_EQ(answer_to("TaskReporting=FastAbort,ResponseFence,RFC3720"), "RFC3720");
  EXPECT_EQ(answer_to("TaskReporting=FastAbort"), "Reject");
}

TEST(Negotiation, MarkersAreAnsweredNo) {
  for (const char* key : {"IFMarker=No", "IFMarker=Yes", "OFMarker=No", "OFMarker=Yes"}) {
    EXPECT_EQ(answer_to(key), "No") << key;
  }
  EXPECT_EQ(answer_to("IFMarker=perhaps"), "Reject");
}

TEST(Negotiation, UnknownKeysAreNotUnderstoodAndObsoleteKeysAreRejected) {
  EXPECT_EQ(answer_to("X-com.example.turbo=Yes"), "NotUnderstood");
  EXPECT_EQ(answer_to("RDMAExtensions=Yes"), "NotUnderstood");
  for (const char* key : {"IFMarkInt=1~2", "OFMarkInt=8"}) {
    EXPECT_EQ(answer_to(key), "Reject") << key;
  }
}

TEST(Negotiation, KeysWithoutEffectInADiscoverySessionAreAnsweredWithAValue) {
  for (const auto& [key, value] : std::initializer_list<std::pair<const char*, const char*>>{
           {"MaxConnections=8", "1"},
           {"InitialR2T=No", "No"},
           {"ImmediateData=Yes", "Yes"},
           {"MaxBurstLength=512", "512"},
           {"FirstBurstLength=512", "512"},
           {"MaxOutstandingR2T=1", "1"},
           {"DataPDUInOrder=Yes", "Yes"},
           {"DataSequenceInOrder=Yes", "Yes"},
           {"TaskReporting=RFC3720", "RFC3720"},
           {"iSCSIProtocolLevel=1", "1"},
           {"HeaderDigest=CRC32C", "CRC32C"},
           {"ErrorRecoveryLevel=0", "0"},
           {"DefaultTime2Wait=0", "2"}}) {
    EXPECT_EQ(answer_to(key, {}, true), value) << key;
    EXPECT_EQ(answer_to(key, {}, false), value) << key;
  }
}

TEST(Negotiation, AKeyIsNegotiatedAgainOnlyWithTheSameOutcome) {
  for (const KeyRule& rule : all_keys()) {
    if ((rule.stages & kInOperational) == 0 || rule.senders != kByBoth) continue;
    Negotiation negotiation{Offer{}};
    const std::string key = std::string(rule.name) + "=512";
    ASSERT_TRUE(answers(negotiation, {key}).ok()) << rule.name;
    EXPECT_TRUE(answers(negotiation, {key}).ok()) << rule.name;
  }
  for (const auto& [first, second] : std::initializer_list<std::pair<const char*, const char*>>{
           {"MaxBurstLength=512", "MaxBurstLength=1024"},
           {"MaxRecvDataSegmentLength=512", "MaxRecvDataSegmentLength=1024"},
           {"HeaderDigest=CRC32C", "HeaderDigest=None"},
           {"ImmediateData=No", "ImmediateData=Yes"}}) {
    Negotiation negotiation{Offer{}};
    ASSERT_TRUE(answers(negotiation, {first}).ok());
    const Parameters before = negotiation.outcome();
    EXPECT_FALSE(answers(negotiation, {second}).ok()) << second;
    EXPECT_EQ(negotiation.outcome().max_burst_length, before.max_burst_length);
  }
}

TEST(Negotiation, AReservedAnswerToAKeyThatWasNotOfferedChangesNothing) {
  for (const std::string value : {"Reject", "Irrelevant", "NotUnderstood"}) {
    Negotiation negotiation{Offer{}};
    auto got = answers(negotiation, {"MaxBurstLength=" + value, "HeaderDigest=" + value,
                                     "MaxRecvDataSegmentLength=" + value});
    ASSERT_TRUE(got.ok()) << got.error();
    EXPECT_EQ(*got, (Keys{"MaxBurstLength=Reject", "HeaderDigest=Reject"}));
    ASSERT_TRUE(answers(negotiation, {"MaxBurstLength=512"}).ok()) << "it can be negotiated yet";
    EXPECT_EQ(negotiation.outcome().max_burst_length, 512u);
    EXPECT_EQ(negotiation.outcome().max_send_data_segment_length, 8192u);
  }
}

TEST(Negotiation, TheSegmentLengthIsDeclaredNotAnswered) {
  for (const auto& [value, expected] :
       std::initializer_list<std::pair<const char*, const char*>>{{"512", ""},
                                                                  {"16777215", ""},
                                                                  {"511", "error"},
                                                                  {"16777216", ""},
                                                                  {"4294967296", ""},
                                                                  {"x", "error"}}) {
    EXPECT_EQ(answer_to("MaxRecvDataSegmentLength=" + std::string(value)), expected) << value;
  }
  Negotiation negotiation{Offer{}};
  EXPECT_EQ(negotiation.outcome().max_send_data_segment_length, 8192u);
  EXPECT_FALSE(negotiation.outcome().initiator_declared_segment);
  ASSERT_TRUE(answers(negotiation, {"MaxRecvDataSegmentLength=65536"}).ok());
  EXPECT_EQ(negotiation.outcome().max_send_data_segment_length, 65536u);
  EXPECT_TRUE(negotiation.outcome().initiator_declared_segment);
  Negotiation largest{Offer{}};
  ASSERT_TRUE(answers(largest, {"MaxRecvDataSegmentLength=16777216"}).ok());
  EXPECT_EQ(largest.outcome().max_send_data_segment_length, 16777215u);
}

TEST(Negotiation, AnswersFollowTheOrderOfTheKeys) {
  Negotiation negotiation{Offer{}};
  Result<Keys> got = answers(negotiation, {"FirstBurstLength=262144", "X-a=1", "InitialR2T=No",
                                           "MaxBurstLength=65536", "IFMarker=No"});
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(got.value(), (Keys{"FirstBurstLength=65536", "X-a=NotUnderstood", "InitialR2T=No",
                               "MaxBurstLength=65536", "IFMarker=No"}));
}

TEST(Negotiation, TheOutcomeHoldsNegotiatedValuesAndDefaultsOtherwise) {
  Negotiation negotiation{Offer{}};
  ASSERT_TRUE(negotiation.finish().ok());
  const Parameters& defaults = negotiation.outcome();
  EXPECT_TRUE(defaults.initial_r2t);
  EXPECT_TRUE(defaults.immediate_data);
  EXPECT_EQ(defaults.max_burst_length, 262144u);
  EXPECT_EQ(defaults.first_burst_length, 65536u);
  EXPECT_EQ(defaults.max_outstanding_r2t, 1u);
  EXPECT_EQ(defaults.default_time2wait, 2u);
  EXPECT_EQ(defaults.default_time2retain, 20u);
  EXPECT_EQ(defaults.protocol_level, 1u);
  EXPECT_EQ(defaults.max_recv_data_segment_length, 8192u) << "nothing was declared";

  Negotiation other{Offer{}};
  ASSERT_TRUE(answers(other, {"InitialR2T=No", "ImmediateData=No", "MaxBurstLength=16384",
                              "FirstBurstLength=8192", "MaxOutstandingR2T=4", "HeaderDigest=CRC32C",
                              "DataDigest=None,CRC32C", "ErrorRecoveryLevel=2",
                              "DefaultTime2Retain=60", "iSCSIProtocolLevel=2"})
                  .ok());
  std::string declared;
  other.declare(&declared);
  ASSERT_TRUE(other.finish().ok());
  const Parameters& agreed = other.outcome();
  EXPECT_FALSE(agreed.initial_r2t);
  EXPECT_FALSE(agreed.immediate_data);
  EXPECT_EQ(agreed.max_burst_length, 16384u);
  EXPECT_EQ(agreed.first_burst_length, 8192u);
  EXPECT_EQ(agreed.max_outstanding_r2t, 4u);
  EXPECT_TRUE(agreed.header_digest);
  EXPECT_FALSE(agreed.data_digest);
  EXPECT_EQ(agreed.error_recovery_level, 0u);
  EXPECT_EQ(agreed.default_time2retain, 0u);
  EXPECT_EQ(agreed.protocol_level, 1u);
  EXPECT_EQ(agreed.max_recv_data_segment_length, 262144u);
}

Offer demanding() {
  Offer offer;
  offer.header_digest = Offer::Digest::kRequire;
  offer.immediate_data = false;
  offer.max_burst_length = 65536;
  offer.first_burst_length = 16384;
  return offer;
}

TEST(Negotiation, OffersOmittedKeysWhoseDefaultsDoNotSuit) {
  Negotiation negotiation{demanding()};
  ASSERT_TRUE(answers(negotiation, {"InitialR2T=No"}).ok());
  std::string text;
  negotiation.offer_missing(&text);
  EXPECT_EQ(keys_of(text), (Keys{"HeaderDigest=CRC32C", "ImmediateData=No", "MaxBurstLength=65536",
                                 "FirstBurstLength=16384"}));
  EXPECT_TRUE(negotiation.awaiting_answers());
  EXPECT_FALSE(negotiation.finish().ok());
  // An AND of No needs no answer (RFC 7143 §6.2.2).
  Result<Keys> got = answers(
      negotiation, {"HeaderDigest=CRC32C", "MaxBurstLength=32768", "FirstBurstLength=16384"});
  ASSERT_TRUE(got.ok());
  EXPECT_TRUE(got->empty()) << "an answer is not answered";
  EXPECT_FALSE(negotiation.awaiting_answers());
  ASSERT_TRUE(negotiation.finish().ok());
  EXPECT_TRUE(negotiation.outcome().header_digest);
  EXPECT_FALSE(negotiation.outcome().immediate_data);
  EXPECT_EQ(negotiation.outcome().max_burst_length, 32768u);
}

TEST(Negotiation, OffersNothingIfTheDefaultsSuit) {
  Negotiation negotiation{Offer{}};
  std::string text;
  negotiation.offer_missing(&text);
  EXPECT_TRUE(text.empty());
}

TEST(Negotiation, WrongAnswersToOffersOfTheTargetEndTheLogin) {
  for (const char* answer :
       {"HeaderDigest=None", "HeaderDigest=Reject", "HeaderDigest=NotUnderstood",
        "HeaderDigest=CRC32C,None", "ImmediateData=Yes", "ImmediateData=Irrelevant",
        "MaxBurstLength=65537", "MaxBurstLength=511", "MaxBurstLength=Reject",
        "FirstBurstLength=16385", "FirstBurstLength=Irrelevant"}) {
    Negotiation negotiation{demanding()};
    ASSERT_TRUE(answers(negotiation, {"InitialR2T=No"}).ok());
    std::string text;
    negotiation.offer_missing(&text);
    EXPECT_FALSE(answers(negotiation, {answer}).ok()) << answer;
  }
}

TEST(Negotiation, ADigestThatIsRequiredButRefusedEndsTheLogin) {
  Offer offer;
  offer.data_digest = Offer::Digest::kRequire;
  Negotiation negotiation{offer};
  ASSERT_TRUE(answers(negotiation, {"DataDigest=None"}).ok());
  EXPECT_FALSE(negotiation.finish().ok());
}

TEST(Negotiation, FirstBurstLengthDoesNotExceedMaxBurstLength) {
  Negotiation lowered{Offer{}};
  ASSERT_TRUE(answers(lowered, {"MaxBurstLength=8192"}).ok());
  std::string text;
  lowered.offer_missing(&text);
  EXPECT_EQ(keys_of(text), Keys{"FirstBurstLength=8192"});

  Negotiation contradictory{Offer{}};
  ASSERT_TRUE(answers(contradictory, {"FirstBurstLength=65536"}).ok());
  ASSERT_TRUE(answers(contradictory, {"MaxBurstLength=8192"}).ok());
  EXPECT_FALSE(contradictory.finish().ok());

  // Without unsolicited data the key is irrelevant (RFC 7143 §13.14).
  Negotiation solicited{Offer{}};
  ASSERT_TRUE(
      answers(solicited, {"MaxBurstLength=8192", "InitialR2T=Yes", "ImmediateData=No"}).ok());
  text.clear();
  solicited.offer_missing(&text);
  EXPECT_TRUE(text.empty());
  ASSERT_TRUE(solicited.finish().ok());
  EXPECT_EQ(solicited.outcome().first_burst_length, 8192u);
}

TEST(Negotiation, ConfiguredOffersAreLimitedToTheRangesOfTheStandard) {
  Offer offer;
  offer.max_recv_data_segment_length = limits::kMaxSegment;  // 2^24, one too many
  offer.max_burst_length = limits::kMaxBurst;
  offer.max_outstanding_r2t = 1000;
  Negotiation negotiation{offer};
  std::string declared;
  negotiation.declare(&declared);
  EXPECT_EQ(keys_of(declared), Keys{"MaxRecvDataSegmentLength=16777215"});
  EXPECT_EQ(answer_to("MaxBurstLength=16777215", offer), "16777215");
  EXPECT_EQ(answer_to("MaxOutstandingR2T=1000", offer), "16");
}

}  // namespace
}  // namespace sluice::iscsi
