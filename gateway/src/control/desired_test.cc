#include "control/desired.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <random>

#include "base/record_text.h"
#include "control/desired_file.h"
#include "control/diff.h"
#include "control/test_objects.h"

namespace sluice::control {
namespace {

using Taken = Desired::Taken;

TEST(Desired, TheDigestMatchesTheContract) {
  // Computed independently: sha256(05 "v" 00 "D1" 06 "h" 00 "D2").
  const Objects objects = objects_of({host_object("h", "D2"), volume_object("v", "D1")});
  std::string hex;
  for (const char c : digest_of(objects)) {
    char text[3];
    std::snprintf(text, sizeof text, "%02x", static_cast<unsigned char>(c));
    hex += text;
  }
  EXPECT_EQ(hex, "b604403e7c231c89421c5dfd45cb7f7a2d6cf82e20747ecc9dae9fc519b374e4");
}

TEST(Desired, AnUpdateOfSeveralMessagesIsAppliedOnlyWithItsLastMessage) {
  Desired desired;
  wire::StreamUpdate first = full_update(5, {volume_object("a", "1")});
  first.set_more(true);
  first.clear_digest();
  wire::StreamUpdate second = full_update(5, {volume_object("a", "1"), host_object("b", "2")});
  second.mutable_put()->erase(second.mutable_put()->begin());
  ASSERT_TRUE(desired.take(first));
  EXPECT_EQ(desired.version(), 0u);
  const Result<Taken> last = desired.take(second);
  ASSERT_TRUE(last) << last.error();
  EXPECT_EQ(last.value(), Taken::kComplete);
  EXPECT_EQ(desired.version(), 5u);
  EXPECT_EQ(desired.held().objects->size(), 2u);
}

TEST(Desired, ADeltaPutsAndRemovesObjectsAndRetainsTheOthers) {
  Desired desired;
  ASSERT_TRUE(desired.take(full_update(1, {volume_object("a", "1"), volume_object("b", "2")})));
  wire::StreamUpdate delta;
  delta.set_version(2);
  *delta.add_put() = volume_object("c", "3");
  *delta.add_removed() = to_wire({wire::OBJECT_KIND_VOLUME, "a"});
  delta.set_digest(digest_of(objects_of({volume_object("b", "2"), volume_object("c", "3")})));
  ASSERT_TRUE(desired.take(delta));
  EXPECT_EQ(desired.held().volume("a"), nullptr);
  EXPECT_NE(desired.held().volume("b"), nullptr);
  EXPECT_NE(desired.held().volume("c"), nullptr);
}

TEST(Desired, AWrongDigestRetainsTheHeldStateAndRequiresAFullUpdate) {
  Desired desired;
  ASSERT_TRUE(desired.take(full_update(1, {volume_object("a", "1")})));
  wire::StreamUpdate delta;
  delta.set_version(2);
  *delta.add_put() = volume_object("b", "2");
  delta.set_digest(std::string(32, 'x'));
  EXPECT_FALSE(desired.take(delta));
  EXPECT_EQ(desired.version(), 0u);  // the version in the hello
  EXPECT_TRUE(desired.digest().empty());
  EXPECT_EQ(desired.held().version, 1u);
  EXPECT_EQ(desired.held().objects->size(), 1u);
  EXPECT_FALSE(desired.take(delta)) << "a delta to a state that is not trusted";
  ASSERT_TRUE(desired.take(full_update(3, {volume_object("b", "2")})));
  EXPECT_EQ(desired.version(), 3u);
}

TEST(Desired, AnUpdateCutOffByTheEndOfTheStreamIsDiscarded) {
  Desired desired;
  wire::StreamUpdate first = full_update(5, {volume_object("a", "1")});
  first.set_more(true);
  ASSERT_TRUE(desired.take(first));
  desired.forget_unfinished();
  ASSERT_TRUE(desired.take(full_update(4, {volume_object("b", "1")})));
  EXPECT_EQ(desired.held().volume("a"), nullptr);
}

TEST(Desired, AnUpdateWithAnObjectOfUnknownKindIsRefused) {
  Desired desired;
  EXPECT_FALSE(desired.take(full_update(1, {wire::DesiredObject()})));
}

std::vector<std::string> steps(const std::vector<Action>& actions) {
  std::vector<std::string> out;
  for (const Action& action : actions) {
    const char* what = action.what == Action::What::kPut     ? "put "
                       : action.what == Action::What::kAgain ? "again "
                                                             : "remove ";
    out.push_back(what + text_of(action.key));
  }
  return out;
}

TEST(Diff, ObjectsArePutAfterTheirReferencedObjectsAndRemovedBeforeThem) {
  const Objects all = objects_of(
      {target_object("t", "v", "h", "1"), volume_object("v", "1"), host_object("h", "1")});
  EXPECT_EQ(steps(diff({}, all)),
            (std::vector<std::string>{"put volume v", "put host h", "put target t"}));
  EXPECT_EQ(steps(diff(all, {})),
            (std::vector<std::string>{"remove target t", "remove host h", "remove volume v"}));
  EXPECT_TRUE(diff(all, all).empty());
}

TEST(Diff, AnObjectThatRefersToAChangedObjectIsAppliedAgain) {
  const auto with = [](const char* host_digest) {
    return objects_of({target_object("t", "v", "h", "1"), target_object("u", "v", "i", "1"),
                       volume_object("v", "1"), host_object("h", host_digest),
                       host_object("i", "1")});
  };
  EXPECT_EQ(steps(diff(with("1"), with("2"))),
            (std::vector<std::string>{"put host h", "again target t"}));
}

// A failover changes hundreds of volumes of one target; the target would be put again for each
// group of them.
TEST(Diff, ATargetIsAppliedAgainForAddedOrRemovedVolumesNotForChangedOnes) {
  const Objects without = objects_of({target_object("t", "v", "h", "1"), host_object("h", "1")});
  const auto with = [](const char* volume_digest) {
    return objects_of({target_object("t", "v", "h", "1"), host_object("h", "1"),
                       volume_object("v", volume_digest)});
  };
  EXPECT_EQ(steps(diff(with("1"), with("2"))), (std::vector<std::string>{"put volume v"}));
  EXPECT_EQ(steps(diff(without, with("1"))),
            (std::vector<std::string>{"put volume v", "again target t"}));
  EXPECT_EQ(steps(diff(with("1"), without)),
            (std::vector<std::string>{"again target t", "remove volume v"}));
}

// A target that is removed must not show its volumes when another target does.
TEST(Diff, TargetsAreRemovedBeforeOthersArePut) {
  const Objects now = objects_of({target_object("t", "v", "h", "1"), volume_object("v", "1"),
                                  volume_object("w", "1"), host_object("h", "1")});
  const Objects next = objects_of(
      {target_object("u", "v", "h", "1"), volume_object("v", "1"), host_object("h", "1")});
  EXPECT_EQ(steps(diff(now, next)),
            (std::vector<std::string>{"remove target t", "put target u", "remove volume w"}));
}

TEST(Diff, ARetriedObjectIsAppliedInItsPlaceAlthoughNothingChanged) {
  const Objects all = objects_of(
      {target_object("t", "v", "h", "1"), volume_object("v", "1"), host_object("h", "1")});
  const Key target{wire::OBJECT_KIND_TARGET, "t"};
  const Key volume{wire::OBJECT_KIND_VOLUME, "v"};
  EXPECT_EQ(steps(diff(all, all, {target, volume})),
            (std::vector<std::string>{"again volume v", "again target t"}));
  const Objects without = objects_of({volume_object("v", "1"), host_object("h", "1")});
  EXPECT_EQ(steps(diff(all, without, {target})), (std::vector<std::string>{"remove target t"}));
}

TEST(DesiredFile, ASavedStateIsLoadedAndItsFileIsReadableByItsOwnerOnly) {
  TestDirectory directory;
  const DesiredFile file(directory.path());
  Desired desired;
  EXPECT_FALSE(file.load(&desired).value());
  ASSERT_TRUE(desired.take(full_update(7, {volume_object("a", "1"), host_object("b", "2")})));
  ASSERT_TRUE(file.save(desired.held()));
  struct stat status{};
  ASSERT_EQ(::stat(file.path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  Desired again;
  const Result<bool> loaded = file.load(&again);
  ASSERT_TRUE(loaded) << loaded.error();
  EXPECT_TRUE(loaded.value());
  EXPECT_EQ(again.version(), 7u);
  EXPECT_EQ(again.digest(), desired.digest());
  EXPECT_NE(again.held().host("b"), nullptr);
}

// A copied directory, or a renamed gateway.
TEST(DesiredFile, AnotherGatewaysStateIsRefused) {
  TestDirectory directory;
  wire::DesiredObject settings;
  settings.mutable_settings()->set_gateway("one");
  settings.mutable_settings()->set_number(1);
  Desired desired;
  ASSERT_TRUE(desired.take(full_update(7, {settings, volume_object("a", "1")})));
  ASSERT_TRUE(DesiredFile(directory.path(), "one").save(desired.held()));
  Desired again;
  EXPECT_TRUE(DesiredFile(directory.path(), "one").load(&again));
  EXPECT_EQ(again.version(), 7u);
  Desired other;
  const Result<bool> loaded = DesiredFile(directory.path(), "two").load(&other);
  ASSERT_FALSE(loaded.ok());
  EXPECT_NE(loaded.error().find("is of gateway one, and this one is two"), std::string::npos);
  EXPECT_TRUE(other.held().objects->empty());
}

TEST(DesiredFile, AFileOfVersion1IsRead) {
  Desired desired;
  ASSERT_TRUE(desired.take(full_update(7, {volume_object("a", "1"), host_object("b", "2")})));
  const std::string text = format_desired(desired.held());
  const std::string message(unseal(text)->substr(std::string_view("sluice-desired 2\n").size()));
  const std::string former = "sluice-desired 1\ncrc32c " + checksum_text(message) + '\n' + message;
  Desired loaded;
  ASSERT_TRUE(parse_desired(former, "f", &loaded));
  EXPECT_EQ(loaded.digest(), desired.digest());
  EXPECT_FALSE(parse_desired(former + 'x', "f", &loaded));
}

TEST(DesiredFile, ADamagedFileIsAnErrorAndYieldsNoState) {
  Desired desired;
  ASSERT_TRUE(desired.take(full_update(7, {volume_object("a", "1"), host_object("b", "2")})));
  const std::string text = format_desired(desired.held());
  for (size_t size = 0; size < text.size(); ++size) {
    Desired loaded;
    EXPECT_FALSE(parse_desired(text.substr(0, size), "f", &loaded)) << size;
    EXPECT_EQ(loaded.version(), 0u);
  }
  for (size_t bit = 0; bit < text.size() * 8; ++bit) {
    std::string flipped = text;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ 1 << bit % 8);
    Desired loaded;
    EXPECT_FALSE(parse_desired(flipped, "f", &loaded)) << bit;
    EXPECT_TRUE(loaded.held().objects->empty());
  }
}

}  // namespace
}  // namespace sluice::control
