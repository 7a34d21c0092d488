#include "rbd/holder.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace sluice::rbd {
namespace {

TEST(Holder, DetectsADeadProcessAndAReusedPid) {
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  const Holder self = Holder::self("192.0.2.1:0/1");
  EXPECT_TRUE(self.is_alive() && self.is_self() && !self.is_dead());
  Holder other = self;
  other.pid = child;
  Holder later = self;
  later.started += 1;
  EXPECT_TRUE(later.is_dead()) << "the number is another's by now";
  kill(child, SIGKILL);
  siginfo_t ended{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(other.is_dead()) << "a zombie";
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(other.is_dead() && !other.is_alive());
}

TEST(Holder, OfAnotherBootIsNeitherAliveNorDead) {
  Holder far = Holder::self("192.0.2.1:0/1");
  far.boot = "another";
  EXPECT_FALSE(far.is_alive() || far.is_dead() || far.is_self());
}

TEST(Holder, IsParsedAsItWasFormatted) {
  const Holder self = Holder::self("192.0.2.1:0/1");
  const auto read = Holder::parse(self.text());
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->text(), self.text());
  EXPECT_EQ(read->describe(), self.describe());
  for (const char* bad : {"", "a", "a b c", "a b c d e"}) EXPECT_FALSE(Holder::parse(bad)) << bad;
}

}  // namespace
}  // namespace sluice::rbd
