"""The system's Chromium, started by Playwright."""

import shutil

from playwright.sync_api import Browser, Playwright

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
# A window's address bar loads two pages of its own, and each page a renderer for the next: two thirds of what a window
# costs. The rest is what Playwright switches off itself and this list replaces, as far as it is about pages.
NOT_NEEDED = (
    "WebUIOmniboxPopup", "WebUIOmniboxAimPopup", "SpareRendererForSitePerProcess",
    "AimEnabled", "AvoidCorsURLLoaderRestartOnRedirect", "AvoidUnnecessaryBeforeUnloadCheckSync",
    "DestroyProfileOnBrowserClose", "HttpsFirstBalancedModeAutoEnable", "HttpsUpgrades", "LensOverlay", "MediaRouter",
    "NetworkTimeServiceQuerying", "OptimizationHints", "PaintHolding", "PreconnectToSearch",
    "ThirdPartyStoragePartitioning",
)  # fmt: skip


def launch(playwright: Playwright) -> Browser:
    program = next(filter(None, map(shutil.which, PROGRAMS)))
    return playwright.chromium.launch(
        executable_path=program, args=["--no-sandbox", "--disable-gpu", f"--disable-features={','.join(NOT_NEEDED)}"]
    )
