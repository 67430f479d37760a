# SPDX-License-Identifier: Apache-2.0
"""The time after which servers take a lock away from who does not renew it, the same for all contenders: run.sh --session."""

import os

T = float(os.environ.get("SESSION_S", "3"))  # seconds
