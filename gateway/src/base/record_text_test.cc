#include "base/record_text.h"

#include <gtest/gtest.h>

#include <string>

namespace sluice {
namespace {

TEST(Seal, AnUndamagedTextIsUnsealed) {
  const std::string text = "sluice-test 1\nepoch 7\n";
  const std::string sealed = seal(text);
  EXPECT_EQ(sealed, text + "crc32c " + checksum_text(text) + '\n');
  EXPECT_EQ(unseal(sealed), text);
  EXPECT_EQ(unseal(seal(std::string())), "");
}

TEST(Seal, EachChangedByteAndEachShorterTextIsDetected) {
  const std::string sealed = seal("sluice-test 1\nepoch 7\n");
  for (size_t i = 0; i < sealed.size(); ++i) {
    std::string damaged = sealed;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    EXPECT_FALSE(unseal(damaged)) << i;
    EXPECT_FALSE(unseal(sealed.substr(0, i))) << i;
  }
}

TEST(Seal, TheChecksumIsCrc32c) {
  EXPECT_EQ(checksum_text("123456789"), "e3069283") << "the check value of RFC 3385's polynomial";
}

TEST(Seal, ATextOfAnEarlierFormatHasItsSealAfterTheHeading) {
  const std::string body = "1 2 volume iqn\n";
  const std::string text = "sluice-test 1\ncrc32c " + checksum_text(body) + '\n' + body;
  EXPECT_EQ(unseal_after_heading(text, "sluice-test 1"), body);
  EXPECT_FALSE(unseal_after_heading(text, "sluice-test 2"));
  EXPECT_FALSE(unseal_after_heading(text.substr(0, 20), "sluice-test 1"));
  EXPECT_FALSE(unseal_after_heading(text + ' ', "sluice-test 1"));
}

TEST(RecordReader, ReadsLinesInTheirOrder) {
  RecordReader lines("sluice-test 1\nname a b\nsize 7\nrest of it", "sluice-test 1");
  EXPECT_FALSE(lines.has("size"));
  EXPECT_EQ(lines.text("name"), "a b");
  EXPECT_TRUE(lines.has("size"));
  EXPECT_EQ(lines.number("size"), 7u);
  EXPECT_EQ(lines.rest(), "rest of it");
  EXPECT_FALSE(lines.bad());
  EXPECT_FALSE(lines.complete());
}

TEST(RecordReader, RejectsAnotherHeadingAnotherLineAndAnotherNumber) {
  const auto size_of = [](std::string_view text) {
    RecordReader lines(text, "sluice-test 1");
    (void)lines.number("size", 100);
    return lines.complete();
  };
  EXPECT_TRUE(size_of("sluice-test 1\nsize 7\n"));
  for (const char* text :
       {"", "sluice-test 1", "sluice-test 10\nsize 7\n", "sluice-test 1\nsize 7",
        "sluice-test 1\nsize  7\n", "sluice-test 1\nsize -7\n", "sluice-test 1\nsize +7\n",
        "sluice-test 1\nsize 101\n", "sluice-test 1\nsize 7 8\n", "sluice-test 1\nsize\n",
        "sluice-test 1\nsizes 7\n", "sluice-test 1\nsize 7\nmore 8\n"}) {
    EXPECT_FALSE(size_of(text)) << text;
  }
}

TEST(WordReader, ReadsWordsAndNumbers) {
  WordReader words("a 12 00ff");
  EXPECT_EQ(words.word(), "a");
  EXPECT_EQ(words.number(12), 12u);
  EXPECT_EQ(words.hex_number(4), 0xffu);
  EXPECT_TRUE(words.complete());
  EXPECT_TRUE(words.word().empty());
  EXPECT_TRUE(words.bad());
}

TEST(WordReader, RejectsNumbersBeyondTheirRange) {
  EXPECT_EQ(WordReader("13").number(12), 0u);
  for (const char* text : {"", " 1", "0x1", "1f", "99999999999999999999"}) {
    WordReader words(text);
    (void)words.number(UINT64_MAX);
    EXPECT_FALSE(words.complete()) << text;
  }
  WordReader digits("0ff");
  (void)digits.hex_number(4);
  EXPECT_TRUE(digits.bad());
}

}  // namespace
}  // namespace sluice
