"""The files in .github: workflows that name what exists, and forms that ask for what helpers need."""

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def parsed(path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def steps(workflow):
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def places(commands):
    """The files and folders of the checkout that commands name."""
    return set(re.findall(r"(?<![\w/.-])(?:\.ci|tests|notebooks|python)(?:/[\w.]+)+(?![\w.*])", commands))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_can_be_read_and_names_what_exists(path):
    workflow = parsed(path)
    assert workflow["name"] == path.stem and workflow.get("on", workflow.get(True))  # YAML 1.1 reads "on" as true
    for step in steps(workflow):
        assert ("run" in step) != ("uses" in step)
    named = places("\n".join(step.get("run", "") for step in steps(workflow)))
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_a_missing_file_would_be_noticed():
    assert places("bash .ci/absent && pytest tests/ops tests/test_*.py") == {".ci/absent", "tests/ops"}


def test_both_sets_of_checks_run_and_every_system_is_built_on():
    (ci,) = (parsed(path) for path in WORKFLOWS if path.name == "ci.yml")
    commands = [step.get("run", "") for step in steps(ci)]
    (full,) = [command.split()[2:] for command in commands if command.startswith("bash .ci/full")]
    script = (ROOT / ".ci" / "full").read_text(encoding="utf-8")
    (sections,) = re.findall(r"set -- (.*?);", script)
    assert "bash .ci/run" in commands and sorted(full) == sorted(set(sections.split()) - {"aarch64"})
    assert all(f"\n{section}() {{" in script for section in sections.split())
    systems = {"macos-14", "ubuntu-22.04", "ubuntu-24.04", "ubuntu-24.04-arm"}
    assert set(ci["jobs"]["systems"]["strategy"]["matrix"]["system"]) == systems


def test_a_tag_makes_a_release_of_all_that_is_built():
    (wheels,) = (parsed(path) for path in WORKFLOWS if path.name == "wheels.yml")
    release = wheels["jobs"].pop("release")
    assert sorted(release["needs"]) == sorted(wheels["jobs"]) and release["permissions"] == {"contents": "write"}
    assert "refs/tags/" in release["if"] and {"v*"} == set(wheels.get("on", wheels.get(True))["push"]["tags"])
    command = release["steps"][-1]["run"]
    assert command.startswith("gh release create") and {"made/*.whl", "made/dist/*.tar.gz"} <= set(command.split())


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.name)
def test_a_form_can_be_read_and_asks_for_the_doctor(path):
    form = parsed(path)
    assert form["name"] and form["description"]
    assert [part for part in form["body"] if "rooflab doctor" in part["attributes"]["label"]]
    for part in form["body"]:
        assert part["type"] == "textarea" and part["id"]


def test_what_the_doctor_says_of_a_problem_is_required():
    form = parsed(ROOT / ".github" / "ISSUE_TEMPLATE" / "problem.yml")
    assert form["body"][0]["id"] == "doctor" and form["body"][0]["validations"]["required"] is True
    assert "python3 python/rooflab/cli/doctor" in form["body"][0]["attributes"]["description"]


@pytest.mark.parametrize("page", ["README.md", ".github/CONTRIBUTING.md", "notebooks/INSTRUCTORS.md"])
def test_a_page_names_what_exists(page):
    """Names with a placeholder in them are passed over."""
    text = (ROOT / page).read_text(encoding="utf-8")
    named = {
        name
        for name in re.findall(r"`([\w./]+)`", text)
        if re.match(r"(csrc|python|tests|notebooks|\.ci|\.github)/", name)
    }
    assert len(named) > 3 and [name for name in named if "labN" not in name and not (ROOT / name).exists()] == []
    for link in re.findall(r"\]\(([\w./]+)", text):
        assert (ROOT / page).parent.joinpath(link).exists(), link
