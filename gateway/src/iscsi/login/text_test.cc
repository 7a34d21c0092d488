#include "iscsi/login/text.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "base/limits.h"
#include "iscsi/login/names.h"

namespace sluice::iscsi {
namespace {

using std::string_literals::operator""s;

TEST(Text, SplitsPairsAtZeroBytesHoweverMany) {
  const std::string text = "A=1\0\0\0Bee=x=y\0C=\0\0"s;
  auto pairs = parse_text(text);
  ASSERT_TRUE(pairs.ok());
  ASSERT_EQ(pairs->size(), 3u);
  EXPECT_EQ((*pairs)[0].key, "A");
  EXPECT_EQ((*pairs)[1].key, "Bee");
  EXPECT_EQ((*pairs)[1].value, "x=y");
  EXPECT_EQ((*pairs)[2].value, "");
}

TEST(Text, AnEmptyTextHasNoPairs) { EXPECT_TRUE(parse_text("").value().empty()); }

TEST(Text, MalformedTextIsRefused) {
  const std::string bad[] = {
      "A=1",        // no zero byte
      "A=1\0B=2"s,  // the last has none
      "A\0"s,       // no '='
      "=1\0"s,      // no key
      "1A=1\0"s,    // a key begins with a letter
      "A B=1\0"s,   // no standard-label
      "A\xc3\xa9=1\0"s,
      "A=1\0A=2\0"s,  // twice
  };
  for (const std::string& text : bad) EXPECT_FALSE(parse_text(text).ok()) << text;
}

TEST(Text, AnEqualRepetitionOfAPairIsDropped) {
  const std::string text = "A=1\0B=2\0A=1\0"s;
  const auto pairs = parse_text(text);
  ASSERT_TRUE(pairs.ok()) << pairs.error();
  ASSERT_EQ(pairs.value().size(), 2u);
  EXPECT_EQ(pairs.value()[0].key, "A");
  EXPECT_EQ(pairs.value()[1].key, "B");
}

TEST(Text, KeyNamesHaveAtMost63Bytes) {
  EXPECT_TRUE(parse_text(std::string(63, 'K') + "=v\0"s).ok());
  EXPECT_FALSE(parse_text(std::string(64, 'K') + "=v\0"s).ok());
}

TEST(Text, PrivateKeysMayUseEveryLabelCharacter) {
  EXPECT_TRUE(parse_text("X-com.example.a_b+c@d=1\0X#reg=1\0iSCSIProtocolLevel=1\0"s).ok());
}

TEST(Text, TheNumberOfKeysIsBounded) {
  std::string text;
  for (unsigned i = 0; i < limits::kMaxKeysPerExchange; ++i) {
    text += "K" + std::to_string(i) + "=1\0"s;
  }
  EXPECT_TRUE(parse_text(text).ok());
  EXPECT_FALSE(parse_text(text + "Over=1\0"s).ok());
}

TEST(Text, BooleansAreYesOrNoExactly) {
  EXPECT_EQ(parse_boolean("Yes"), true);
  EXPECT_EQ(parse_boolean("No"), false);
  for (const char* bad : {"yes", "NO", "", "1", "Yes ", "True"}) {
    EXPECT_EQ(parse_boolean(bad), std::nullopt) << bad;
  }
}

TEST(Text, NumbersAreDecimalOrHexConstants) {
  EXPECT_EQ(parse_number("0"), 0u);
  EXPECT_EQ(parse_number("8192"), 8192u);
  EXPECT_EQ(parse_number("0x2000"), 8192u);
  EXPECT_EQ(parse_number("0XfF"), 255u);
  EXPECT_EQ(parse_number("18446744073709551615"), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(parse_number("0xffffffffffffffff"), std::numeric_limits<uint64_t>::max());
  for (const char* bad : {"", "08", "-1", "+1", " 1", "1 ", "0x", "0xg", "1e3", "ten",
                          "18446744073709551616", "0x10000000000000000", "0b11"}) {
    EXPECT_EQ(parse_number(bad), std::nullopt) << bad;
  }
}

TEST(Text, RangesRunFromLowToHigh) {
  EXPECT_EQ(parse_range("2~5"), (std::pair<uint64_t, uint64_t>{2, 5}));
  EXPECT_EQ(parse_range("7"), (std::pair<uint64_t, uint64_t>{7, 7}));
  EXPECT_EQ(parse_range("3~3"), (std::pair<uint64_t, uint64_t>{3, 3}));
  for (const char* bad : {"5~2", "~5", "5~", "~", "1~2~3", ""}) {
    EXPECT_EQ(parse_range(bad), std::nullopt) << bad;
  }
}

using Bytes = std::vector<uint8_t>;

TEST(Text, BinaryIsHexOrBase64) {
  EXPECT_EQ(parse_binary("0x00ff10", 8), (Bytes{0x00, 0xff, 0x10}));
  EXPECT_EQ(parse_binary("0XABC", 8), (Bytes{0x0a, 0xbc}));
  EXPECT_EQ(parse_binary("0bTWFu", 8), (Bytes{'M', 'a', 'n'}));
  EXPECT_EQ(parse_binary("0BTWE=", 8), (Bytes{'M', 'a'}));
  EXPECT_EQ(parse_binary("0bTQ==", 8), (Bytes{'M'}));
  EXPECT_EQ(parse_binary("0b+/+/", 8), (Bytes{0xfb, 0xff, 0xbf}));
  for (const char* bad : {"", "0x", "0b", "00ff", "0xzz", "0bTWF", "0bTW=F", "0bT===", "0bTWF?",
                          "0bTR==", "0b====", "12345"}) {
    EXPECT_EQ(parse_binary(bad, 64), std::nullopt) << bad;
  }
}

TEST(Text, BinaryIsBounded) {
  EXPECT_TRUE(parse_binary("0x0102", 2));
  EXPECT_FALSE(parse_binary("0x010203", 2));
  EXPECT_FALSE(parse_binary("0x10203", 2));
  EXPECT_TRUE(parse_binary("0bTWE=", 2));
  EXPECT_FALSE(parse_binary("0bTWFu", 2));
}

TEST(Text, BinaryIsWrittenAsHex) { EXPECT_EQ(binary_text(Bytes{0x00, 0x9a, 0xff}), "0x009aff"); }

TEST(Text, ListsHaveNoEmptyItems) {
  EXPECT_EQ(split_list("CHAP,None"), (std::vector<std::string_view>{"CHAP", "None"}));
  EXPECT_EQ(split_list("None"), (std::vector<std::string_view>{"None"}));
  for (const char* bad : {"", ",", "a,", ",a", "a,,b"}) EXPECT_TRUE(split_list(bad).empty());
}

TEST(Text, NoneIsAValueAndNoReservedAnswer) {
  EXPECT_EQ(reserved_answer("None"), Reserved::kNo);
  EXPECT_EQ(reserved_answer("Reject"), Reserved::kReject);
  EXPECT_EQ(reserved_answer("Irrelevant"), Reserved::kIrrelevant);
  EXPECT_EQ(reserved_answer("NotUnderstood"), Reserved::kNotUnderstood);
}

TEST(TextCollector, HoldsAtMost64KiBInAtMost64Pdus) {
  TextCollector collector;
  const std::string big(limits::kMaxTextBytes, 'x');
  EXPECT_TRUE(collector.append(as_bytes(big)));
  EXPECT_FALSE(collector.append(as_bytes("y")));
  EXPECT_EQ(collector.text().size(), limits::kMaxTextBytes);
  collector.clear();
  for (unsigned i = 0; i < limits::kMaxLoginPdus; ++i) EXPECT_TRUE(collector.append({}));
  EXPECT_FALSE(collector.append({}));
}

TEST(Names, AreConvertedToLowerCase) {
  EXPECT_EQ(normalise_name("IQN.1994-05.com.RedHat:Host.One").value(),
            "iqn.1994-05.com.redhat:host.one");
  EXPECT_EQ(normalise_name("iqn.2008-11.org.linux-kvm").value(), "iqn.2008-11.org.linux-kvm");
  EXPECT_EQ(normalise_name("eui.02004567A425678D").value(), "eui.02004567a425678d");
  EXPECT_EQ(normalise_name("naa.52004567BA64678D").value(), "naa.52004567ba64678d");
  EXPECT_TRUE(normalise_name("naa.62004567BA64678D0123456789ABCDEF").ok());
  EXPECT_TRUE(normalise_name("iqn.2001-04.com.example:\xe3\x82\xb9").ok());
}

TEST(Names, OfUnknownFormAreRefused) {
  for (const char* bad : {"",
                          "iqn.",
                          "iqn.1994-5.com",
                          "iqn.1994-13.com",
                          "iqn.1994-00.com",
                          "iqn.199x-05.com",
                          "iqn.1994-05",
                          "iqn.1994-05.",
                          "iqn.1994-05.:x",
                          "iqn.1994-05..com",
                          "eui.123",
                          "eui.02004567A425678G",
                          "eui.02004567A425678D0",
                          "naa.0123456789abcde",
                          "disk1",
                          "iqn.1994-05.com.a:b c",
                          "iqn.1994-05.com.a:b_c",
                          "iqn.1994-05.com.a:b/c",
                          "iqn.1994-05.com.a:\xff",
                          "iqn.1994-05.com.a:\xc0\xaf",
                          "iqn.1994-05.com.a:\xe3\x82",
                          "iqn.1994-05.com.a:\xed\xa0\x80",
                          "iqn.1994-05.com.a:\xf4\x90\x80\x80"}) {
    EXPECT_FALSE(normalise_name(bad).ok()) << bad;
  }
}

TEST(Names, HaveAtMost223Bytes) {
  const std::string stem = "iqn.1994-05.com.example:";
  EXPECT_TRUE(normalise_name(stem + std::string(223 - stem.size(), 'x')).ok());
  EXPECT_FALSE(normalise_name(stem + std::string(224 - stem.size(), 'x')).ok());
}

}  // namespace
}  // namespace sluice::iscsi
